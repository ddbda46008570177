//! Twilio's error envelope.

use serde_json::json;

use crate::faults::RetryAfter;
use crate::reply::Reply;

/// An error answer before it is turned into a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiError {
    pub(crate) status: u16,
    pub(crate) code: u32,
    pub(crate) message: String,
}

impl ApiError {
    pub(crate) fn new(status: u16, code: u32, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into() }
    }

    /// 400 with 20001: a parameter that cannot be taken.
    pub(crate) fn parameter(message: impl Into<String>) -> Self {
        Self::new(400, 20001, message)
    }

    /// 404 with 20404, which names the path and not what of it is missing.
    pub(crate) fn missing(path: &str) -> Self {
        let resource = path.trim_start_matches("/v1");
        Self::new(404, 20404, format!("The requested resource {resource} was not found"))
    }

    pub(crate) fn closed() -> Self {
        Self::new(400, 50377, "Conversation is in the final closed state and cannot be changed")
    }

    pub(crate) fn into_reply(self) -> Reply {
        let more_info = format!("https://www.twilio.com/docs/errors/{}", self.code);
        let body = json!({
            "code": self.code, "message": self.message, "more_info": more_info, "status": self.status,
        });
        Reply::json(self.status, body.to_string())
    }
}

/// 429 of the account's concurrency limit.
pub(crate) fn too_many(retry_after: Option<&RetryAfter>) -> Reply {
    let reply = ApiError::new(429, 20429, "Too Many Requests").into_reply();
    match retry_after.and_then(RetryAfter::header_text) {
        Some(text) => reply.with("retry-after", text),
        None => reply,
    }
}
