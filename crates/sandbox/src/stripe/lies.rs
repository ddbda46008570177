//! Faults as Stripe would word them.

use super::error::ApiError;
use super::objects::insufficient;
use crate::faults::{self, Envelope, Fault};
use crate::reply::Reply;

const ENVELOPE: Envelope =
    Envelope { before: br#"{"error":{"type":"api_error","message":""#, after: br#""}}"# };

/// The answer of a call that never reaches the idempotency layer.
pub(crate) fn instead(fault: &Fault) -> Option<Reply> {
    let error = match fault {
        Fault::InUse => in_use(),
        Fault::RateLimited { reason, retry_after } => rate_limited(reason).retry_after(retry_after.as_ref()),
        Fault::LockTimeout => {
            let message = "This object cannot be accessed right now because another API request or Stripe \
                           process is currently accessing it.";
            ApiError::new(429, "invalid_request_error", Some("lock_timeout"), message)
        }
        Fault::Unauthorized => {
            let message = "Expired API Key provided: sk_test_****";
            ApiError::new(401, "invalid_request_error", Some("api_key_expired"), message)
        }
        Fault::Forbidden => {
            let message = "The provided key does not have the required permissions for this endpoint.";
            ApiError::new(403, "invalid_request_error", None, message)
        }
        Fault::Refuse { status, error_type, code, should_retry, retry_after, headers } => {
            let default = if *status >= 500 { "api_error" } else { "invalid_request_error" };
            let kind = error_type.as_deref().unwrap_or(default);
            let mut error = ApiError::new(*status, kind, code.as_deref(), "Refused by a fault rule.");
            if let Some(retry) = should_retry {
                error = error.should_retry(*retry);
            }
            let mut reply = error.retry_after(retry_after.as_ref()).into_reply();
            reply.extra.extend(headers.clone());
            return Some(reply);
        }
        _ => return faults::instead(fault, ENVELOPE),
    };
    Some(error.into_reply())
}

/// The stored error of a call that does reach it, and whether the effect exists all the same.
pub(crate) fn stored_error(fault: &Fault) -> Option<(ApiError, bool)> {
    let Fault::StoredError { status, code, applied, should_retry } = fault else { return None };
    let code = code.as_deref();
    let mut error = match status {
        400 if code.is_none() => insufficient(),
        402 => {
            let mut error = ApiError::new(
                402,
                "card_error",
                Some(code.unwrap_or("card_declined")),
                "Your card was declined.",
            );
            error.decline_code = Some("generic_decline".to_owned());
            error
        }
        500.. => ApiError::new(*status, "api_error", code, "An unknown error occurred."),
        _ => ApiError::new(*status, "invalid_request_error", code, "The request could not be executed."),
    };
    if let Some(retry) = should_retry.or((*status >= 500).then_some(false)) {
        error = error.should_retry(retry);
    }
    Some((error, *applied))
}

/// What the caller gets to see of the true reply.
pub(crate) fn distort(fault: &Fault, truth: Reply) -> Reply {
    faults::distort(fault, truth, ENVELOPE)
}

/// 409 while the first call with the key is executing.
pub(crate) fn in_use() -> ApiError {
    let message = "There is currently another in-progress request using this Idempotency Key (that probably \
                   means you submitted twice, and the other request is still going through).";
    ApiError::new(409, "idempotency_error", Some("idempotency_key_in_use"), message)
}

/// 429 with the documented reason header and no `Retry-After`, which Stripe does not document.
pub(crate) fn rate_limited(reason: &str) -> ApiError {
    let message = "Request rate limit exceeded. Learn more about rate limits in the documentation.";
    ApiError::new(429, "invalid_request_error", Some("rate_limit"), message)
        .with("stripe-rate-limited-reason", reason)
}
