use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

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

/// The local end of a lease. Whoever renews the lease moves it on; everything that is done under the lease reads it.
///
/// It is never later than the database's end as long as each `until` was computed before its statement was sent.
#[derive(Debug, Clone)]
pub struct LeaseEnd(Arc<AtomicU64>);

/// Of a lease that somebody else has reclaimed, in nanoseconds since boot.
const LOST: u64 = 0;

impl LeaseEnd {
    /// The end of a lease that has just been taken.
    #[must_use]
    pub fn new(until: Deadline) -> Self {
        Self(Arc::new(AtomicU64::new(nanoseconds(until))))
    }

    /// The end as of the last confirmed renewal.
    #[must_use]
    pub fn until(&self) -> Deadline {
        Deadline(Duration::from_nanos(self.0.load(Ordering::Acquire)))
    }

    /// A renewal was confirmed. The end never moves back, and a lost lease stays lost.
    pub fn renew(&self, until: Deadline) {
        let later = |now| (now != LOST).then(|| nanoseconds(until).max(now));
        let _unchanged = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, later);
    }

    /// Somebody else has the work now: the end is past, for ever.
    pub fn lose(&self) {
        self.0.store(LOST, Ordering::Release);
    }
}

/// Until when an attempt may start requests. It follows its lease's renewals, so that an attempt of many requests may
/// take longer than one lease; it is over for all clones at once when the attempt is.
#[derive(Debug, Clone)]
pub struct CallDeadline {
    lease: LeaseEnd,
    /// Between the last moment for a first byte and the lease's end.
    before: Duration,
    latest: Option<Deadline>,
    over: Arc<AtomicBool>,
}

impl CallDeadline {
    /// `before` the end of the lease, wherever renewals move that: the time one request may take.
    #[must_use]
    pub fn following(lease: &LeaseEnd, before: Duration) -> Self {
        Self { lease: lease.clone(), before, latest: None, over: Arc::default() }
    }

    /// Nor after `latest`, whatever is renewed.
    #[must_use]
    pub fn at_most(mut self, latest: Deadline) -> Self {
        self.latest = Some(latest);
        self
    }

    /// Whether nothing may be sent any more.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.remaining().is_zero()
    }

    /// Time left as of the last renewal, zero once passed.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        if self.over.load(Ordering::Acquire) {
            return Duration::ZERO;
        }
        let covered = self.lease.until().remaining().saturating_sub(self.before);
        self.latest.map_or(covered, |latest| latest.remaining().min(covered))
    }

    /// The attempt is over: whatever still holds a clone sends nothing any more, however long the lease is kept for
    /// others.
    pub fn end(&self) {
        self.over.store(true, Ordering::Release);
    }
}

impl From<Deadline> for CallDeadline {
    /// A fixed point.
    fn from(deadline: Deadline) -> Self {
        Self::following(&LeaseEnd::new(deadline), Duration::ZERO)
    }
}

/// 584 years of them fit.
fn nanoseconds(point: Deadline) -> u64 {
    u64::try_from(point.0.as_nanos()).unwrap_or(u64::MAX)
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
    use super::{CallDeadline, Deadline, LeaseEnd};
    use std::time::{Duration, Instant};

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn a_deadline_passes_when_its_time_is_up() {
        assert!(Deadline::after(Duration::ZERO).passed());
        let later = Deadline::after(MINUTE);
        assert!(!later.passed() && later.remaining() > MINUTE / 2);
        assert!(!Deadline::after(Duration::MAX).passed());
        assert!(!CallDeadline::from(Deadline::after(Duration::MAX)).passed());
        assert!(CallDeadline::from(Deadline::after(Duration::ZERO)).passed());
    }

    #[test]
    fn a_deadline_that_lies_ahead_comes_nearer_and_passes() {
        let (soon, started) = (Deadline::after(Duration::from_millis(1)), Instant::now());
        while !soon.passed() {
            assert!(started.elapsed() < MINUTE / 6, "the boot clock stands still");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_renewal_gives_the_calls_under_the_lease_more_time() {
        let lease = LeaseEnd::new(Deadline::after(MINUTE));
        let (short, long) =
            (CallDeadline::following(&lease, MINUTE / 2), CallDeadline::following(&lease, 2 * MINUTE));
        assert!(!short.passed() && long.passed());
        assert!(short.remaining() <= MINUTE / 2, "a request must fit before the end");
        lease.renew(Deadline::after(3 * MINUTE));
        assert!(!long.passed() && long.remaining() <= MINUTE);
        lease.renew(Deadline::after(Duration::ZERO));
        assert!(!long.passed(), "replies of renewals may come in any order");
    }

    #[test]
    fn a_lost_lease_stays_lost() {
        let lease = LeaseEnd::new(Deadline::after(MINUTE));
        let call = CallDeadline::following(&lease, Duration::ZERO);
        lease.lose();
        lease.renew(Deadline::after(MINUTE));
        assert!(call.passed() && lease.until().passed());
    }

    #[test]
    fn a_bounded_deadline_does_not_follow_past_its_bound_and_an_ended_one_is_over_for_all_clones() {
        let lease = LeaseEnd::new(Deadline::after(MINUTE));
        assert!(
            CallDeadline::following(&lease, Duration::ZERO).at_most(Deadline::after(Duration::ZERO)).passed()
        );
        let call = CallDeadline::following(&lease, Duration::ZERO).at_most(Deadline::after(2 * MINUTE));
        assert!(call.remaining() <= MINUTE, "the lease still bounds it");
        let leaked = call.clone();
        call.end();
        lease.renew(Deadline::after(MINUTE));
        assert!(leaked.passed());
    }
}
