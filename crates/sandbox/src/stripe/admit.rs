//! What may refuse a call before the idempotency layer: faults, the limiter, credentials, parameters.

use super::call::Call;
use super::endpoint::Endpoint;
use super::error::ApiError;
use super::read::account_invalid;
use super::{expand, lies, params};
use crate::app::Inner;
use crate::config::AccountState;
use crate::faults::Plan;
use crate::reply::Reply;

impl Inner {
    /// The refusal of a call before the idempotency layer, if any. It stores nothing.
    pub(super) fn refusal(&self, call: &Call, plan: &Plan) -> Option<Reply> {
        if let Some(reply) = plan.main.as_ref().and_then(lies::instead) {
            return Some(reply);
        }
        if let Some(limited) = &plan.limited {
            let error = lies::rate_limited(&limited.reason);
            return Some(error.retry_after(limited.retry_after.as_ref()).into_reply());
        }
        self.check(call).err().map(ApiError::into_reply)
    }

    fn check(&self, call: &Call) -> Result<(), ApiError> {
        let unauthorized = |message| ApiError::new(401, "invalid_request_error", None, message);
        let accepted = &self.stripe.api_keys;
        match call.api_key.as_deref() {
            None => {
                return Err(unauthorized(
                    "You did not provide an API key. You need to provide your API key in the Authorization \
                     header, using Bearer auth.",
                ));
            }
            Some(key) if !(key.starts_with("sk_") || key.starts_with("rk_")) => {
                return Err(unauthorized("Invalid API Key provided."));
            }
            Some(key) if !accepted.is_empty() && !accepted.iter().any(|known| known == key) => {
                return Err(unauthorized("Invalid API Key provided."));
            }
            Some(_) => {}
        }
        let endpoint = Endpoint::route(&call.method, &call.path)?;
        if let Some(id) = &call.account {
            let missing = self.stripe.world.account_state(id) == AccountState::Missing;
            if missing || !id.starts_with("acct_") {
                return Err(account_invalid(id));
            }
        }
        if call.key.as_ref().is_some_and(|key| key.is_empty() || key.len() > 255) {
            let message = "Idempotency keys must be 1 to 255 characters long.";
            return Err(ApiError::new(400, "idempotency_error", None, message));
        }
        params::check(&call.params, endpoint.params())?;
        expand::check(&call.params.expand())
    }
}
