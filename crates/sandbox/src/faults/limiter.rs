//! A real rate limiter, for the callers that must find a rate instead of meeting a scripted refusal.

use std::time::Instant;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Facts, RetryAfter};

/// Settings of the limiter. Stripe: 100 per second live, 25 in a sandbox
/// (<https://docs.stripe.com/rate-limits>).
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimiterRule {
    /// Calls per second in the long run.
    pub per_second: f64,
    /// Calls that may come at once; defaults to one second's worth, at least 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<f64>,
    /// Only paths with this prefix count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// `Stripe-Rate-Limited-Reason` of refusals by rate; those by concurrency are `global-concurrency`.
    #[serde(default = "global_rate")]
    pub reason: String,
    /// Calls that may be held (by `slow` and `late` rules) at one time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_concurrent: Option<u64>,
    /// A header Stripe does not document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<RetryAfter>,
}

fn global_rate() -> String {
    "global-rate".to_owned()
}

/// Why and how the limiter refuses a call.
#[derive(Debug, Clone)]
pub(crate) struct Limited {
    pub(crate) reason: String,
    pub(crate) retry_after: Option<RetryAfter>,
}

/// A token bucket with counters.
#[derive(Debug)]
pub(crate) struct Limiter {
    rule: LimiterRule,
    tokens: f64,
    filled: Instant,
    allowed: u64,
    refused: u64,
}

impl Limiter {
    pub(crate) fn new(rule: LimiterRule) -> Self {
        let tokens = capacity(&rule);
        Self { rule, tokens, filled: Instant::now(), allowed: 0, refused: 0 }
    }

    /// The refusal when the call exceeds the rate, or comes while too many are held.
    pub(crate) fn refuse(&mut self, facts: &Facts<'_>, held: u64) -> Option<Limited> {
        if self.rule.path.as_deref().is_some_and(|prefix| !facts.path.starts_with(prefix)) {
            return None;
        }
        if self.rule.max_concurrent.is_some_and(|most| held >= most) {
            return Some(self.limited("global-concurrency"));
        }
        let now = Instant::now();
        let earned = now.duration_since(self.filled).as_secs_f64() * self.rule.per_second;
        self.tokens = (self.tokens + earned).min(capacity(&self.rule));
        self.filled = now;
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            self.allowed += 1;
            None
        } else {
            let reason = self.rule.reason.clone();
            Some(self.limited(&reason))
        }
    }

    fn limited(&mut self, reason: &str) -> Limited {
        self.refused += 1;
        Limited { reason: reason.to_owned(), retry_after: self.rule.retry_after.clone() }
    }

    pub(crate) fn report(&self) -> Value {
        json!({"rule": self.rule, "allowed": self.allowed, "refused": self.refused})
    }
}

fn capacity(rule: &LimiterRule) -> f64 {
    rule.burst.unwrap_or(rule.per_second).max(1.0)
}
