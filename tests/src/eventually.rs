//! Waiting for a condition, never for a time.

use anyhow::bail;
use std::time::{Duration, Instant};

/// How long a condition may take. The slowest honest wait is a lease that must expire before work is taken over: a
/// few seconds with the compressed timers of tests; the rest is room for a busy two-core machine.
pub const LIMIT: Duration = Duration::from_secs(60);

/// Between two looks; short against a database round trip of a busy machine.
const STEP: Duration = Duration::from_millis(20);

/// Asks `condition` until it holds. `what` completes "timed out after 60s waiting for …".
///
/// # Errors
/// The condition's own error, at once, or [`LIMIT`] has passed.
pub async fn eventually(
    what: &str,
    mut condition: impl AsyncFnMut() -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    let started = Instant::now();
    while !condition().await? {
        if started.elapsed() > LIMIT {
            bail!("timed out after {LIMIT:?} waiting for {what}");
        }
        tokio::time::sleep(STEP).await;
    }
    Ok(())
}
