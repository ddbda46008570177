use std::time::Duration;

use backline_provider_http::Answer;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

/// An answer as it came: status, the headers that say something, and the body.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) request_id: Option<String>,
    /// `Twilio-Concurrent-Requests`: calls of the account in flight, as Twilio counts them.
    pub(crate) concurrent_requests: Option<u32>,
    /// Not documented by Twilio, but sent by the proxies in front of it.
    pub(crate) retry_after: Option<Duration>,
    pub(crate) body: Bytes,
}

impl Reply {
    /// Everything but the body, which may have been lost.
    pub(crate) fn from_head(answer: &Answer) -> Self {
        Self {
            status: answer.status,
            request_id: answer.header("twilio-request-id"),
            concurrent_requests: answer
                .header("twilio-concurrent-requests")
                .and_then(|value| value.trim().parse().ok()),
            retry_after: answer.retry_after(),
            body: Bytes::new(),
        }
    }

    /// The code of Twilio's error envelope, if the body is one; a proxy's page is not.
    pub(crate) fn error_code(&self) -> Option<u32> {
        serde_json::from_slice::<Envelope>(&self.body).ok().map(|envelope| envelope.code)
    }

    /// What of this answer may be stored. Never the message: it quotes identities and phone numbers.
    pub(crate) fn evidence(&self, code: Option<u32>) -> Value {
        json!({
            "status": self.status,
            "request_id": self.request_id,
            "code": code,
            "concurrent_requests": self.concurrent_requests,
        })
    }
}

/// `{"code", "message", "more_info", "status"}`; the code decides.
#[derive(Deserialize)]
struct Envelope {
    code: u32,
}
