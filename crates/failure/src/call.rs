use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use uuid::Uuid;

use crate::{CallDeadline, Class, Failure, Gate, Permit};

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
    /// No first byte leaves after this. It moves while the attempt's lease is renewed (`reconcile`), or only bounds the
    /// attempt as a whole (`command`, `event`): ask it before every request.
    pub deadline: CallDeadline,
    /// W3C trace context to pass on.
    pub traceparent: Option<String>,
    left: Arc<AtomicBool>,
    gate: Option<Arc<dyn Gate>>,
}

impl Call {
    /// A call that has not left, to a provider that nothing limits.
    #[must_use]
    pub fn new(
        operation_id: Uuid,
        generation: i64,
        submission: i32,
        attempt: i32,
        key: String,
        timeout: Duration,
        deadline: impl Into<CallDeadline>,
    ) -> Self {
        let left = Arc::new(AtomicBool::new(false));
        Self {
            operation_id,
            generation,
            submission,
            attempt,
            key,
            timeout,
            deadline: deadline.into(),
            traceparent: None,
            left,
            gate: None,
        }
    }

    /// Puts a gate before every request.
    #[must_use]
    pub fn with_gate(mut self, gate: Arc<dyn Gate>) -> Self {
        self.gate = Some(gate);
        self
    }

    /// Passes a W3C trace context on to the provider.
    #[must_use]
    pub fn with_traceparent(mut self, traceparent: impl Into<String>) -> Self {
        self.traceparent = Some(traceparent.into());
        self
    }

    /// Waits for the leave to send one request. Transports await it before anything of the request can leave, ask the
    /// deadline after it, and keep the permit until the answer has been read.
    ///
    /// # Errors
    /// No request may be sent in this attempt any more; nothing of this one has left.
    pub async fn admit(&self) -> Result<Permit, Failure> {
        match &self.gate {
            Some(gate) => gate.enter().await,
            None => Ok(Permit::free()),
        }
    }

    /// Makes the next requests slower if `failure` says that the provider asked for less. Whoever reads the wire says
    /// this at once, so that an attempt that goes on after such an answer does not go on at the old rate.
    pub async fn heed(&self, failure: &Failure) {
        if failure.class == Class::Throttled
            && let Some(gate) = &self.gate
        {
            gate.slow_down(failure.retry_after).await;
        }
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

#[cfg(test)]
mod tests {
    use super::Call;
    use crate::Deadline;
    use std::time::Duration;
    use uuid::Uuid;

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
