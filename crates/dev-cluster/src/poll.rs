//! Waiting for something outside this process to become true: the crate's one sleep.

use std::io;
use std::time::{Duration, Instant};

/// A local server answers within a few of these; a fork of a shell takes about one.
const STEP: Duration = Duration::from_millis(10);

/// Asks `check` until it answers `Some`, at most for `limit`. `what` completes "timed out after … waiting for …".
pub(crate) fn until<T>(
    what: &str,
    limit: Duration,
    mut check: impl FnMut() -> io::Result<Option<T>>,
) -> io::Result<T> {
    let started = Instant::now();
    loop {
        if let Some(found) = check()? {
            return Ok(found);
        }
        if started.elapsed() >= limit {
            let text = format!("timed out after {limit:?} waiting for {what}");
            return Err(io::Error::new(io::ErrorKind::TimedOut, text));
        }
        #[expect(
            clippy::disallowed_methods,
            reason = "other processes have no event to wait for, and no runtime runs here"
        )]
        std::thread::sleep(STEP);
    }
}
