//! The catalogue of lies.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

fn yes() -> bool {
    true
}
fn ok() -> u16 {
    200
}
fn bad_gateway() -> u16 {
    502
}
fn two_megabytes() -> usize {
    2_000_000
}
fn few_bytes() -> usize {
    16
}

/// What happens to a call. `applied` says whether the effect is created nevertheless.
///
/// `slow`, `hide` and `becomes` change the call and combine with any other fault; of the rest the
/// first rule that hits wins, and the rules after it do not count the call.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Fault {
    /// Applies the effect, then closes the socket without a reply.
    DropReply,
    /// Closes the socket before anything happens; nothing is stored.
    DropBefore,
    /// Holds the call, closes the socket after `close_after` (or waits for the client to give up) and
    /// applies the effect `apply_after` its arrival, whether or not anyone listens.
    Late {
        /// From arrival to application.
        #[serde(with = "crate::duration")]
        apply_after: Duration,
        /// From arrival to closing the socket.
        #[serde(default, with = "crate::duration::optional", skip_serializing_if = "Option::is_none")]
        close_after: Option<Duration>,
    },
    /// Executes only after a while; the key is in use meanwhile.
    Slow {
        /// Time in flight.
        #[serde(with = "crate::duration")]
        delay: Duration,
    },
    /// An error produced *inside* the idempotency layer: stored and replayed for the key. A GET only
    /// gets the error.
    StoredError {
        /// 400, 402 or 500 and above.
        status: u16,
        /// Stripe's code; 400 defaults to `balance_insufficient`, 402 to `card_declined`.
        #[serde(default)]
        code: Option<String>,
        /// Whether the effect exists although an error is reported.
        #[serde(default)]
        applied: bool,
        /// `Stripe-Should-Retry`; a stored 500 defaults to `false` as Stripe sends it.
        #[serde(default)]
        should_retry: Option<bool>,
    },
    /// 409 `idempotency_key_in_use`; nothing is stored.
    InUse,
    /// 429 with `Stripe-Rate-Limited-Reason`; nothing is stored.
    RateLimited {
        /// `global-rate`, `endpoint-rate`, `global-concurrency`, `endpoint-concurrency`, `resource-specific`.
        reason: String,
        /// A header Stripe does not document, for the callers that must survive it.
        #[serde(default)]
        retry_after: Option<RetryAfter>,
    },
    /// 429 `lock_timeout` without the reason header; nothing is stored.
    LockTimeout,
    /// 401: the credential expired; nothing is stored.
    Unauthorized,
    /// 403: the credential lacks a permission; nothing is stored.
    Forbidden,
    /// Any other refusal before the idempotency layer.
    Refuse {
        /// HTTP status.
        status: u16,
        /// Stripe's error type.
        #[serde(default)]
        error_type: Option<String>,
        /// Stripe's error code.
        #[serde(default)]
        code: Option<String>,
        /// `Stripe-Should-Retry`.
        #[serde(default)]
        should_retry: Option<bool>,
        /// `Retry-After`.
        #[serde(default)]
        retry_after: Option<RetryAfter>,
        /// Further headers.
        #[serde(default)]
        headers: BTreeMap<String, String>,
    },
    /// A body that is not JSON.
    Garbage {
        /// HTTP status.
        #[serde(default = "ok")]
        status: u16,
        /// Whether the effect exists.
        #[serde(default = "yes")]
        applied: bool,
    },
    /// The true body, cut in the middle; the length header agrees with the cut.
    Truncated,
    /// An HTML page, as a proxy in front of the API would answer.
    Html {
        /// HTTP status, often 200 or 502.
        #[serde(default = "bad_gateway")]
        status: u16,
        /// Whether the effect exists.
        #[serde(default = "yes")]
        applied: bool,
    },
    /// An error envelope whose text is enormous.
    HugeError {
        /// HTTP status.
        #[serde(default = "bad_gateway")]
        status: u16,
        /// Length of the text in bytes.
        #[serde(default = "two_megabytes")]
        bytes: usize,
        /// Whether the effect exists.
        #[serde(default = "yes")]
        applied: bool,
    },
    /// An error envelope whose text a database or a decoder cannot take.
    BadText {
        /// Which text.
        text: BadText,
        /// HTTP status.
        #[serde(default = "bad_gateway")]
        status: u16,
        /// Whether the effect exists.
        #[serde(default = "yes")]
        applied: bool,
    },
    /// The true reply, a few bytes at a time.
    Drip {
        /// Bytes per piece.
        #[serde(default = "few_bytes")]
        chunk: usize,
        /// Pause between pieces.
        #[serde(with = "crate::duration")]
        every: Duration,
    },
    /// The true reply, cut by closing the socket after so many body bytes.
    Reset {
        /// Body bytes that still arrive.
        #[serde(default)]
        after_bytes: usize,
    },
    /// The created object is invisible to retrieve and list for a while; the key still replays.
    Hide {
        /// From application.
        #[serde(rename = "for", with = "crate::duration")]
        span: Duration,
    },
    /// The created object contradicts itself later: a refund fails, a payout fails after `paid`.
    Becomes {
        /// Final status, such as `failed` or `canceled`.
        status: String,
        /// From application; zero is at once.
        #[serde(with = "crate::duration")]
        after: Duration,
        /// Failure code or reason.
        #[serde(default)]
        code: Option<String>,
    },
}

/// Value of a `Retry-After` header.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryAfter {
    /// Whole seconds.
    Seconds(u64),
    /// An HTTP date so many seconds from now; negative is in the past.
    DateIn(i64),
    /// Anything, for instance garbage.
    Raw(String),
}

impl RetryAfter {
    /// The header's text, if there can be one.
    pub(crate) fn header_text(&self) -> Option<String> {
        match self {
            Self::Seconds(seconds) => Some(seconds.to_string()),
            Self::Raw(text) => Some(text.clone()),
            Self::DateIn(seconds) => {
                let at = crate::clock::real_now().checked_add(time::Duration::seconds(*seconds))?;
                let format = time::macros::format_description!(
                    "[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT"
                );
                at.format(format).ok()
            }
        }
    }
}

/// Texts that break naive storage.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BadText {
    /// `\u0000`, which PostgreSQL's jsonb refuses.
    Nul,
    /// `\ud83d` alone.
    LoneSurrogate,
    /// Raw bytes that end inside a four-byte character: not UTF-8.
    EmojiCut,
}
