//! Waiting for a condition, never for a time.

use std::fmt;
use std::time::{Duration, Instant};

/// How long a condition may take. The slowest honest wait is a lease that must expire before work is taken over: a
/// few seconds with the compressed timers of tests; the rest is room for a busy two-core machine.
pub const LIMIT: Duration = Duration::from_secs(60);

/// Between two looks; short against a database round trip of a busy machine.
const STEP: Duration = Duration::from_millis(20);

/// The condition was asked until the end, and did not hold.
#[derive(Debug)]
pub struct TimedOut(String);

impl fmt::Display for TimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "timed out after {LIMIT:?} waiting for {}", self.0)
    }
}

impl std::error::Error for TimedOut {}

/// Asks `condition` until it holds. `what` completes "timed out after 60s waiting for …".
///
/// # Errors
/// The condition's own error, at once, or [`TimedOut`] after [`LIMIT`].
pub async fn eventually(
    what: &str,
    mut condition: impl AsyncFnMut() -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    let started = Instant::now();
    while !condition().await? {
        if started.elapsed() > LIMIT {
            return Err(TimedOut(what.to_owned()).into());
        }
        tokio::time::sleep(STEP).await;
    }
    Ok(())
}
