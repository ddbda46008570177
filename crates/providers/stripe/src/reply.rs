use std::time::Duration;

use backline_provider_http::Answer;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

/// An answer as it came: status, the headers that decide something, and the body.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) request_id: Option<String>,
    /// `Stripe-Should-Retry`, which overrides what the status suggests.
    pub(crate) should_retry: Option<bool>,
    /// `Stripe-Rate-Limited-Reason` of a 429.
    pub(crate) rate_limited_reason: Option<String>,
    /// `Idempotent-Replayed`: the answer was stored under the key by an earlier request.
    pub(crate) replayed: bool,
    /// `Retry-After`: not documented by Stripe, but by the proxies in front of it.
    pub(crate) retry_after: Option<Duration>,
    pub(crate) body: Bytes,
}

impl Reply {
    /// Everything but the body, which may have been lost.
    pub(crate) fn from_head(answer: &Answer) -> Self {
        let flag =
            |name: &str| answer.header(name).and_then(|value| value.trim().to_ascii_lowercase().parse().ok());
        Self {
            status: answer.status,
            request_id: answer.header("request-id"),
            should_retry: flag("stripe-should-retry"),
            rate_limited_reason: answer.header("stripe-rate-limited-reason"),
            replayed: flag("idempotent-replayed").unwrap_or(false),
            retry_after: answer.retry_after(),
            body: Bytes::new(),
        }
    }

    /// Stripe's error envelope, if the body is one; a proxy's page is not.
    pub(crate) fn error(&self) -> Option<ErrorBody> {
        serde_json::from_slice::<Envelope>(&self.body).ok().map(|envelope| envelope.error)
    }

    /// What of this answer may be stored: never the body, which may carry a cardholder's data.
    pub(crate) fn evidence(&self, error: Option<&ErrorBody>) -> Value {
        json!({
            "status": self.status,
            "request_id": self.request_id,
            "replayed": self.replayed,
            "should_retry": self.should_retry,
            "rate_limited_reason": self.rate_limited_reason,
            "type": error.map(|error| &error.kind),
            "code": error.and_then(|error| error.code.as_ref()),
            "decline_code": error.and_then(|error| error.decline_code.as_ref()),
            "param": error.and_then(|error| error.param.as_ref()),
        })
    }
}

#[derive(Deserialize)]
struct Envelope {
    error: ErrorBody,
}

/// The fields of an error that decide or explain something.
///
/// Not the typed `ApiErrors`: it nests whole payment objects, and one field of those that fails to parse would turn a
/// clear refusal into an unknown.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ErrorBody {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) code: Option<String>,
    #[serde(default)]
    pub(crate) decline_code: Option<String>,
    #[serde(default)]
    pub(crate) param: Option<String>,
    #[serde(default)]
    pub(crate) message: Option<String>,
}
