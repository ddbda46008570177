//! Retry policy: how long a failed message is held back.

use std::time::Duration;

/// Exponential backoff between two bounds. Figures: facts of `RetryPolicy` in `google/pubsub/v1/pubsub.proto`
/// (0 to 600 s, 10 s and 600 s when unset).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RetryBackoff {
    pub(crate) minimum: Duration,
    pub(crate) maximum: Duration,
}

impl RetryBackoff {
    /// Delay after the `failures`-th failure, counted from 1: doubles from the minimum up to the maximum.
    pub(crate) fn after(self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        self.minimum.saturating_mul(1 << doublings).min(self.maximum).max(self.minimum)
    }
}

#[cfg(test)]
mod tests {
    use super::RetryBackoff;
    use std::time::Duration;

    #[test]
    fn doubles_from_minimum_to_maximum() {
        let backoff = RetryBackoff { minimum: Duration::from_secs(10), maximum: Duration::from_secs(60) };
        let delays: Vec<u64> = (1..6).map(|n| backoff.after(n).as_secs()).collect();
        assert_eq!(delays, [10, 20, 40, 60, 60]);
        assert_eq!(backoff.after(u32::MAX).as_secs(), 60);
    }

    #[test]
    fn zero_minimum_is_immediate() {
        let backoff = RetryBackoff { minimum: Duration::ZERO, maximum: Duration::from_secs(600) };
        assert_eq!(backoff.after(9), Duration::ZERO);
    }
}
