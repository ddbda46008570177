//! Whether the loops move: readiness comes from what happened, not from what was started.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;
use tokio::time::Instant;

/// Last sign of life of one loop.
#[derive(Debug)]
pub(crate) struct Progress {
    name: &'static str,
    /// A loop that has not beaten for this long is stalled.
    limit: Duration,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    beat: Instant,
    trouble: Option<String>,
}

impl Progress {
    pub(crate) fn new(name: &'static str, limit: Duration) -> Self {
        Self { name, limit, state: Mutex::new(State { beat: Instant::now(), trouble: None }) }
    }

    /// The loop did its work, or found that there is none.
    pub(crate) fn beat(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state = State { beat: Instant::now(), trouble: None };
    }

    /// The loop failed for a reason worth showing.
    pub(crate) fn trouble(&self, reason: &str) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).trouble = Some(reason.to_owned());
    }

    /// `None` when healthy, else what is wrong.
    pub(crate) fn stalled(&self) -> Option<String> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.beat.elapsed() <= self.limit {
            return None;
        }
        let reason = state.trouble.as_deref().unwrap_or("no sign of life");
        Some(format!("{}: {reason}", self.name))
    }
}
