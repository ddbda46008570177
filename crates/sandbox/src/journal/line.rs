//! One line of the journal.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A call, or a control action. A call that is held before it is applied writes two lines with one
/// `seq`: `replied: "held"` on arrival, and the final one when it ended.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Line {
    /// Rises with arrival.
    pub(crate) seq: u64,
    /// Real time of writing, RFC 3339.
    pub(crate) at: String,
    /// Real time of arrival, RFC 3339. The call was in flight from then until `at`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) received_at: Option<String>,
    /// `stripe` or `twilio`; absent for control actions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) provider: Option<String>,
    /// `GET`, `POST`, `DELETE`, or `CONTROL`.
    pub(crate) method: String,
    pub(crate) path: String,
    /// Kind of object a POST creates, with the verb when it changes one (`payment_intent.capture`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<String>,
    /// `metadata[operation_id]`, or `X-Backline-Operation` at Twilio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) operation_id: Option<String>,
    /// `Idempotency-Key`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<String>,
    /// `Stripe-Account`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) account: Option<String>,
    /// `traceparent`: the span that the caller was in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) traceparent: Option<String>,
    /// SHA-256 over path and sorted parameters, hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) params_hash: Option<String>,
    /// The request arrived whole. Always true for calls.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) received: bool,
    /// This very call had its effect; false for replays, refusals and declines.
    #[serde(default)]
    pub(crate) applied: bool,
    /// The stored answer of an earlier call with the key was given.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) replayed: bool,
    /// HTTP status, or `dropped`, `held`.
    #[serde(default)]
    pub(crate) replied: Value,
    /// The caller had given up, or was made to, before the call ended.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) abandoned: bool,
    /// SID of the conversation that the call is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) conversation: Option<String>,
    /// `seq` of the calls about the same conversation that were in flight when this one arrived.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) overlaps: Vec<u64>,
    /// Second line of a held call.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) was_held: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) object_id: Option<String>,
    /// Minor units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) amount: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) currency: Option<String>,
    /// Rule that decided the outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fault: Option<String>,
    /// What the provider needs to rebuild its state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) change: Option<Value>,
    /// What the idempotency layer stored for the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stored: Option<Stored>,
}

/// The answer stored for a key, without what rebuilding can recompute.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Stored {
    pub(crate) status: u16,
    /// Provider clock, milliseconds since 1970.
    pub(crate) at_ms: i64,
    /// `None`: the body is the changed object right after the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) body: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "shape that serde's skip_serializing_if asks for")]
fn is_false(flag: &bool) -> bool {
    !flag
}
