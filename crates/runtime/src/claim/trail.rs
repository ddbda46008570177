//! How far the fold has been, and since when: what the intake mark may be set to.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use tokio::time::Instant;

/// Marks are written at most this often: they only save scanning.
const WRITE_EVERY: Duration = Duration::from_secs(1);

/// Highest sequence numbers folded, by kind, with the time they were seen.
#[derive(Debug)]
pub(crate) struct Trail {
    lag: Duration,
    seen: VecDeque<(Instant, BTreeMap<String, i64>)>,
    written: Option<Instant>,
}

impl Trail {
    pub(crate) fn new(lag: Duration) -> Self {
        Self { lag, seen: VecDeque::new(), written: None }
    }

    /// Notes how far a fold came.
    pub(crate) fn note(&mut self, now: Instant, highest: BTreeMap<String, i64>) {
        if !highest.is_empty() {
            self.seen.push_back((now, highest));
        }
    }

    /// Marks that are safe now: whoever took a lower number has had the declared commit lag to commit, and later
    /// commits are found by the unmarked scan.
    pub(crate) fn due(&mut self, now: Instant) -> BTreeMap<String, i64> {
        let mut marks: BTreeMap<String, i64> = BTreeMap::new();
        if self.written.is_some_and(|at| now - at < WRITE_EVERY) {
            return marks;
        }
        while self.seen.front().is_some_and(|(at, _)| now - *at >= self.lag) {
            let Some((_, highest)) = self.seen.pop_front() else { break };
            for (kind, seq) in highest {
                let mark = marks.entry(kind).or_insert(seq);
                *mark = (*mark).max(seq);
            }
        }
        if !marks.is_empty() {
            self.written = Some(now);
        }
        marks
    }
}

#[cfg(test)]
mod tests {
    use super::Trail;
    use std::collections::BTreeMap;
    use std::time::Duration;
    use tokio::time::Instant;

    #[test]
    fn a_mark_trails_by_the_commit_lag_and_never_falls() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let folded = |seq| BTreeMap::from([("k".to_owned(), seq)]);
        let mut trail = Trail::new(Duration::from_secs(5));
        trail.note(at(0), folded(10));
        trail.note(at(3), folded(7));
        assert!(trail.due(at(4)).is_empty());
        assert_eq!(trail.due(at(5)), folded(10));
        assert!(trail.due(at(6)).is_empty());
        assert_eq!(trail.due(at(8)), folded(7));
    }
}
