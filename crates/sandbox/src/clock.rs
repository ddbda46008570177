//! The sandbox's clock: real time plus a shift that tests may move.

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Milliseconds since 1970. Objects, key ages and settlement use this clock; the journal's `at` does not.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Clock {
    shift_ms: i64,
}

impl Clock {
    /// Real time plus the shift.
    pub(crate) fn now_ms(self) -> i64 {
        let real = real_now();
        let millis =
            real.unix_timestamp().saturating_mul(1_000).saturating_add(i64::from(real.millisecond()));
        millis.saturating_add(self.shift_ms)
    }

    /// Moves the clock by `by_ms`, forwards or backwards.
    pub(crate) fn shift(&mut self, by_ms: i64) {
        self.shift_ms = self.shift_ms.saturating_add(by_ms);
    }

    /// Sum of all shifts so far.
    pub(crate) fn shift_ms(self) -> i64 {
        self.shift_ms
    }
}

/// Real time: journal lines are compared with the callers' own clocks, and shown dates are real dates.
#[expect(clippy::disallowed_methods, reason = "a provider has a clock of its own, and this is its home")]
pub(crate) fn real_now() -> OffsetDateTime {
    OffsetDateTime::now_utc()
}

/// Real time as RFC 3339.
pub(crate) fn real_now_text() -> String {
    real_now().format(&Rfc3339).unwrap_or_default()
}
