//! The machine's clock, for times that begin in one process and end in another.

use std::time::{SystemTime, UNIX_EPOCH};

/// Microseconds since 1970.
pub(super) fn now_us() -> i64 {
    #[expect(
        clippy::disallowed_methods,
        reason = "a measurement between two processes of one machine; decides nothing"
    )]
    let now = SystemTime::now();
    now.duration_since(UNIX_EPOCH).ok().and_then(|since| i64::try_from(since.as_micros()).ok()).unwrap_or(0)
}
