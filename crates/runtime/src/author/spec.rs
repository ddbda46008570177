//! What a handler declares about its kind.

use backline_failure::{Mode, Policy};
use std::time::Duration;

/// How operations of one serial key exclude each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Serial {
    /// They never overlap.
    Exclusive,
    /// They also run in order of acceptance; a dead head blocks until an operator decides.
    Fifo,
}

/// Everything the runtime must know about a kind before it may claim it.
#[derive(Debug, Clone)]
pub struct KindSpec {
    /// What its inputs mean.
    pub mode: Mode,
    /// Provider and account, for example `stripe:platform`: budget, breaker and pause are per account.
    pub provider_account: String,
    /// How operations with the same serial key exclude each other.
    pub serial: Serial,
    /// How long the provider deduplicates by our key after the first submission; `None` = it does not.
    pub idempotency_window: Option<Duration>,
    /// How late a request may still apply after the caller gave up.
    pub linger: Duration,
    /// How long an applied effect may be invisible to a lookup.
    pub lookup_lag: Duration,
    /// Bound of one provider call.
    pub request_timeout: Duration,
    /// What failures do.
    pub policy: Policy,
    /// Lookups without a decision before a person is asked.
    pub max_lookups: u32,
    /// Highest input version this build reads.
    pub max_input_version: i32,
    /// Moves money: identities are kept for ever.
    pub financial: bool,
    /// Dead-letter actions need a second person.
    pub irreversible: bool,
    /// History keeps the frozen input.
    pub keep_input: bool,
}

impl KindSpec {
    /// A kind whose provider has no idempotency key.
    #[must_use]
    pub fn new(mode: Mode, provider_account: impl Into<String>) -> Self {
        Self {
            mode,
            provider_account: provider_account.into(),
            serial: Serial::Exclusive,
            idempotency_window: None,
            // A proxy or load balancer may hold a request this long before it reaches the provider.
            linger: Duration::from_secs(60),
            lookup_lag: Duration::from_secs(5),
            request_timeout: Duration::from_secs(10),
            policy: Policy::default(),
            max_lookups: 20,
            max_input_version: 1,
            financial: false,
            irreversible: false,
            keep_input: true,
        }
    }

    /// The provider deduplicates by our key for this long.
    #[must_use]
    pub fn with_native_idempotency(mut self, window: Duration) -> Self {
        self.idempotency_window = Some(window);
        self
    }
}
