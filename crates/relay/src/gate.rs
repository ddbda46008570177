//! Slowing down for a topic that is out of order, without holding up the others.
//!
//! After a failure a topic is closed for a while that doubles; then one lane may probe it. An outage therefore costs
//! one request per pause, however much waits (field case 5), and burns no attempt of any entry.

use rand::Rng;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

#[derive(Debug)]
pub(crate) struct Gate {
    closed: Mutex<HashMap<String, Closed>>,
    start: Duration,
    max: Duration,
}

#[derive(Debug)]
struct Closed {
    failures: u32,
    until: Instant,
    probing: bool,
}

/// The right to publish to a topic once. Dropping it without a report frees the place of a probe.
#[derive(Debug)]
pub(crate) struct Admission<'a> {
    gate: &'a Gate,
    topic: &'a str,
}

impl Gate {
    pub(crate) fn new(start: Duration, max: Duration) -> Self {
        Self { closed: Mutex::default(), start, max }
    }

    /// Topics that need not be read at the moment.
    pub(crate) fn paused(&self, now: Instant) -> Vec<String> {
        let closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        let shut = closed.iter().filter(|(_, state)| state.probing || state.until > now);
        shut.map(|(topic, _)| topic.clone()).collect()
    }

    /// Whether one may publish to the topic now.
    pub(crate) fn admit<'a>(&'a self, topic: &'a str, now: Instant) -> Option<Admission<'a>> {
        let mut closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        match closed.get_mut(topic) {
            Some(state) if state.probing || state.until > now => None,
            Some(state) => {
                state.probing = true;
                Some(Admission { gate: self, topic })
            }
            None => Some(Admission { gate: self, topic }),
        }
    }
}

impl Admission<'_> {
    /// The topic works.
    pub(crate) fn succeeded(self) {
        let mut closed = self.gate.closed.lock().unwrap_or_else(PoisonError::into_inner);
        closed.remove(self.topic);
    }

    /// The topic does not work.
    pub(crate) fn failed(self, now: Instant) {
        let mut closed = self.gate.closed.lock().unwrap_or_else(PoisonError::into_inner);
        let state =
            closed.entry(self.topic.to_owned()).or_insert(Closed { failures: 0, until: now, probing: false });
        state.probing = false;
        // Lanes that were under way together fail together: one failure, not eight.
        if state.until <= now {
            let pause =
                self.gate.start.saturating_mul(2_u32.saturating_pow(state.failures)).min(self.gate.max);
            state.failures = state.failures.saturating_add(1).min(16);
            state.until = now + pause.mul_f64(rand::rng().random_range(0.75..1.25));
        }
    }
}

impl Drop for Admission<'_> {
    fn drop(&mut self) {
        let mut closed = self.gate.closed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(state) = closed.get_mut(self.topic) {
            state.probing = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Gate;
    use std::time::Duration;
    use tokio::time::Instant;

    const MILLI: Duration = Duration::from_millis(1);

    #[test]
    fn after_an_outage_one_probe_at_a_time_goes_through() {
        let gate = Gate::new(MILLI * 200, Duration::from_secs(10));
        let start = Instant::now();
        let under_way = [gate.admit("t", start), gate.admit("t", start)];
        under_way.into_iter().flatten().for_each(|admission| admission.failed(start));
        assert!(gate.admit("t", start).is_none() && gate.admit("other", start).is_some());
        assert_eq!(gate.paused(start), ["t"]);

        let later = start + MILLI * 251;
        let probe = gate.admit("t", later);
        assert!(probe.is_some() && gate.admit("t", later).is_none());
        drop(probe);
        let probe = gate.admit("t", later);
        probe.into_iter().for_each(super::Admission::succeeded);
        assert!(gate.paused(later).is_empty());
    }

    #[test]
    fn pauses_double_and_are_bounded() {
        let gate = Gate::new(MILLI * 200, Duration::from_secs(10));
        let start = Instant::now();
        let mut probes = 0;
        for tick in 0..50 {
            let now = start + MILLI * 100 * tick;
            if let Some(probe) = gate.admit("t", now) {
                probes += 1;
                probe.failed(now);
            }
        }
        assert!((3..=7).contains(&probes), "{probes} probes in 5 s");
    }
}
