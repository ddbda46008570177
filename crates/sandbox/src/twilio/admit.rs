//! What may refuse a call before it is executed: faults, the limiter, credentials, parameters.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;

use super::call::Call;
use super::endpoint::Endpoint;
use super::error::{ApiError, too_many};
use super::lies;
use crate::app::Inner;
use crate::faults::Plan;
use crate::reply::Reply;

/// User and password of a Basic header.
pub(crate) fn basic(header: &HeaderValue) -> Option<(String, String)> {
    let pair = STANDARD.decode(header.to_str().ok()?.strip_prefix("Basic ")?.trim()).ok()?;
    let (user, password) = std::str::from_utf8(&pair).ok()?.split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
}

impl Inner {
    /// The refusal of a call that will not be executed, if any.
    pub(super) fn twilio_refusal(&self, call: &Call, plan: &Plan) -> Option<Reply> {
        if let Some(reply) = plan.main.as_ref().and_then(lies::instead) {
            return Some(reply);
        }
        if let Some(limited) = &plan.limited {
            return Some(too_many(limited.retry_after.as_ref()));
        }
        self.twilio_check(call).err().map(ApiError::into_reply)
    }

    fn twilio_check(&self, call: &Call) -> Result<(), ApiError> {
        let known = &self.twilio.api_keys;
        let shaped = |user: &str| {
            user.len() == 34
                && (user.starts_with("SK") || user.starts_with("AC"))
                && user.bytes().skip(2).all(|byte| byte.is_ascii_hexdigit())
        };
        let accepted = call.credentials.as_ref().is_some_and(|(user, password)| {
            shaped(user)
                && !password.is_empty()
                && (known.is_empty() || known.contains(&format!("{user}:{password}")))
        });
        if !accepted {
            return Err(ApiError::new(401, 20003, "Authenticate"));
        }
        let segments = call.segments();
        let endpoint =
            Endpoint::route(&call.method, &segments).ok_or_else(|| ApiError::missing(&call.path))?;
        let unknown = call.params.iter().find(|(name, _)| !endpoint.parameters().contains(name));
        match unknown {
            Some((name, _)) => Err(ApiError::parameter(format!("Unknown parameter {name}"))),
            None => Ok(()),
        }
    }
}
