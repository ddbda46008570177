use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use uuid::Uuid;

/// One attempt to carry a submission to its provider.
///
/// Clones share the may-have-left mark: the runtime keeps one while the handler holds the other, so the mark survives a
/// handler that panics or is dropped.
#[derive(Debug, Clone)]
pub struct Call {
    /// Identity of the operation; goes to the provider as metadata where it takes any.
    pub operation_id: Uuid,
    /// How often the desired state has been asked for; 1 for command and event.
    pub generation: i64,
    /// Which authorized presentation this is; rises only after a definite non-application.
    pub submission: i32,
    /// Counted attempts of the operation, this one included.
    pub attempt: i32,
    /// The provider's idempotency key: derived from operation, generation and submission, at most 255 bytes.
    pub key: String,
    /// How long the whole request may take, reading the reply included.
    pub timeout: Duration,
    /// No first byte leaves after this.
    pub deadline: Deadline,
    /// W3C trace context to pass on.
    pub traceparent: Option<String>,
    left: Arc<AtomicBool>,
}

impl Call {
    /// A call that has not left.
    #[must_use]
    pub fn new(
        operation_id: Uuid,
        generation: i64,
        submission: i32,
        attempt: i32,
        key: String,
        timeout: Duration,
        deadline: Deadline,
    ) -> Self {
        let left = Arc::new(AtomicBool::new(false));
        Self {
            operation_id,
            generation,
            submission,
            attempt,
            key,
            timeout,
            deadline,
            traceparent: None,
            left,
        }
    }

    /// Passes a W3C trace context on to the provider.
    #[must_use]
    pub fn with_traceparent(mut self, traceparent: impl Into<String>) -> Self {
        self.traceparent = Some(traceparent.into());
        self
    }

    /// From here on the request may reach the provider. Transports say this immediately before the first byte.
    pub fn mark_may_have_left(&self) {
        self.left.store(true, Ordering::Release);
    }

    /// Whether the request may have reached the provider.
    #[must_use]
    pub fn may_have_left(&self) -> bool {
        self.left.load(Ordering::Acquire)
    }
}

/// A point on the boot clock, which no clock step moves and which counts the time a suspended machine slept: a process
/// that wakes from either must not send what its lease no longer covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(Duration);

impl Deadline {
    /// The point `wait` from now.
    #[must_use]
    pub fn after(wait: Duration) -> Self {
        Self(since_boot().saturating_add(wait))
    }

    /// Whether the point is reached.
    #[must_use]
    pub fn passed(self) -> bool {
        self.remaining().is_zero()
    }

    /// Time left, zero once passed.
    #[must_use]
    pub fn remaining(self) -> Duration {
        self.0.saturating_sub(since_boot())
    }
}

fn since_boot() -> Duration {
    #[cfg(target_os = "linux")]
    let clock = ClockId::Boottime;
    // Elsewhere only development happens, and no lease outlives the lid of a laptop there.
    #[cfg(not(target_os = "linux"))]
    let clock = ClockId::Monotonic;
    let now = clock_gettime(clock);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanoseconds = u32::try_from(now.tv_nsec).unwrap_or(0);
    Duration::new(seconds, nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::{Call, Deadline};
    use std::time::Duration;
    use uuid::Uuid;

    #[test]
    fn a_deadline_passes_when_its_time_is_up() {
        assert!(Deadline::after(Duration::ZERO).passed());
        let later = Deadline::after(Duration::from_secs(60));
        assert!(!later.passed() && later.remaining() > Duration::from_secs(50));
        assert!(!Deadline::after(Duration::MAX).passed());
    }

    #[test]
    fn clones_share_the_mark() {
        let second = Duration::from_secs(1);
        let call = Call::new(Uuid::nil(), 1, 1, 1, "key".to_owned(), second, Deadline::after(second));
        let other = call.clone();
        assert!(!other.may_have_left());
        call.mark_may_have_left();
        assert!(other.may_have_left());
    }
}
