//! Faults as Twilio would word them.

use super::error::{ApiError, too_many};
use crate::faults::{self, Envelope, Fault};
use crate::reply::Reply;

const ENVELOPE: Envelope = Envelope { before: br#"{"code":20500,"message":""#, after: br#"","status":500}"# };

/// The answer of a call that is not executed.
pub(crate) fn instead(fault: &Fault) -> Option<Reply> {
    let error = match fault {
        Fault::RateLimited { retry_after, .. } => return Some(too_many(retry_after.as_ref())),
        Fault::Unauthorized => ApiError::new(401, 20003, "Authenticate"),
        Fault::Forbidden => ApiError::new(403, 20003, "Permission denied"),
        Fault::Refuse { status, code, retry_after, headers, .. } => {
            let error = ApiError::new(*status, number(*status, code.as_deref()), "Refused by a fault rule.");
            let mut reply = error.into_reply();
            if let Some(text) = retry_after.as_ref().and_then(faults::RetryAfter::header_text) {
                reply = reply.with("retry-after", text);
            }
            reply.extra.extend(headers.clone());
            return Some(reply);
        }
        // A drill whose rule fires and changes nothing would prove nothing.
        Fault::InUse | Fault::LockTimeout | Fault::Becomes { .. } => {
            ApiError::new(501, 20501, "This fault does not exist at Twilio.")
        }
        _ => return faults::instead(fault, ENVELOPE),
    };
    Some(error.into_reply())
}

/// The error of a call that is executed or not, and whether it is.
pub(crate) fn stored_error(fault: &Fault) -> Option<(ApiError, bool)> {
    let Fault::StoredError { status, code, applied, .. } = fault else { return None };
    let code = number(*status, code.as_deref());
    Some((ApiError::new(*status, code, "An internal server error has occurred"), *applied))
}

/// What the caller gets to see of the true reply.
pub(crate) fn distort(fault: &Fault, truth: Reply) -> Reply {
    faults::distort(fault, truth, ENVELOPE)
}

/// The code of a rule, or Twilio's general one of the status: 20404, 20429, 20500.
fn number(status: u16, code: Option<&str>) -> u32 {
    code.and_then(|code| code.parse().ok()).unwrap_or(20_000 + u32::from(status))
}
