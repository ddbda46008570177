//! One request, one answer, no retry: what every provider's module sends its typed requests with.
//!
//! The transport knows the moment after which a request may have left, and nothing of any provider's meaning: it says
//! what is certain when no answer came, and hands over every answer that did. Which class an answer has is for the
//! provider's own failure table.

mod answer;
mod guarded_body;
mod span;
mod transport;

pub use answer::{Answer, BodyLost};
pub use http::Method;
pub use transport::{SetupError, Transport};
pub use url::Url;

/// Names under which one provider's requests appear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Provider {
    /// First part of failure codes: `stripe` in `stripe.timeout`.
    pub name: &'static str,
    /// Crash point just before a write may leave.
    pub before: &'static str,
    /// Crash point right after a write's answer, or its loss.
    pub after: &'static str,
    /// Path segments that are names of the API; spans show every other one as `{id}`.
    pub words: &'static [&'static str],
}
