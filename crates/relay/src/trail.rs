//! The trailing mark: which entry numbers nobody can still be about to commit.
//!
//! Numbers are given before commit, so a late commit may appear *below* numbers already published (field case 1). A
//! number is settled once the producers' declared commit lag has passed since it was given out.

use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

#[derive(Debug)]
pub(crate) struct Trail {
    lag: Duration,
    samples: VecDeque<(Instant, i64)>,
    settled: i64,
}

impl Trail {
    pub(crate) fn new(lag: Duration) -> Self {
        Self { lag, samples: VecDeque::new(), settled: 0 }
    }

    /// Notes the highest number given out, looked up no later than `at`.
    pub(crate) fn note(&mut self, at: Instant, horizon: i64) {
        self.samples.push_back((at, horizon));
        while let Some((taken, horizon)) = self.samples.front().copied() {
            if at.duration_since(taken) < self.lag {
                break;
            }
            self.settled = horizon;
            self.samples.pop_front();
        }
    }

    /// Everything at or below this is visible by now, or its producer broke its promise: the periodic scan from the
    /// beginning finds that too.
    pub(crate) fn settled(&self) -> i64 {
        self.settled
    }
}

#[cfg(test)]
mod tests {
    use super::Trail;
    use std::time::Duration;
    use tokio::time::Instant;

    #[test]
    fn a_number_settles_after_the_lag() {
        let start = Instant::now();
        let mut trail = Trail::new(Duration::from_secs(60));
        trail.note(start, 100);
        trail.note(start + Duration::from_secs(59), 900);
        assert_eq!(trail.settled(), 0);
        trail.note(start + Duration::from_secs(60), 950);
        assert_eq!(trail.settled(), 100);
        trail.note(start + Duration::from_secs(119), 990);
        assert_eq!(trail.settled(), 900);
    }
}
