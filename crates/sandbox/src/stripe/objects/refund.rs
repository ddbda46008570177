//! Refunds of payment intents.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::payment_intent::{CHARGE_PREFIX, PaymentIntent};
use super::{Context, Executed, balance_transaction_id};
use crate::stripe::error::ApiError;
use crate::stripe::form::Params;
use crate::stripe::table::{Base, Record, make_id, parse_id};
use crate::stripe::world::{Change, World};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Refund {
    #[serde(flatten)]
    pub(crate) base: Base,
    /// Number of the refunded intent (and of its charge).
    pub(crate) intent: u64,
    pub(crate) amount: i64,
    pub(crate) currency: String,
    pub(crate) reason: Option<String>,
}

impl Record for Refund {
    const PREFIX: &'static str = "re";
    const OBJECT: &'static str = "refund";

    fn base(&self) -> &Base {
        &self.base
    }

    fn keys(&self) -> Vec<(&'static str, String)> {
        vec![
            ("payment_intent", make_id(PaymentIntent::PREFIX, self.intent)),
            ("charge", make_id(CHARGE_PREFIX, self.intent)),
        ]
    }
}

impl Refund {
    pub(crate) fn create(world: &World, params: &Params, context: &Context) -> Executed {
        let (field, id, number) = match (params.get("payment_intent"), params.get("charge")) {
            (Some(id), None) => ("payment_intent", id, parse_id(PaymentIntent::PREFIX, id)),
            (None, Some(id)) => ("charge", id, parse_id(CHARGE_PREFIX, id)),
            _ => {
                let message = "One of the following params should be provided for this request: \
                               payment_intent or charge.";
                return Err(ApiError::invalid(Some("parameter_missing"), "", message).into());
            }
        };
        let intent = number
            .and_then(|n| world.intents.number(n))
            .filter(|intent| intent.base.account == context.account)
            .ok_or_else(|| ApiError::missing(400, field, id, field))?;
        if intent.received == 0 {
            let message =
                format!("This PaymentIntent ({}) does not have a successful charge to refund.", intent.id());
            return Err(ApiError::invalid(Some("payment_intent_unexpected_state"), field, message).into());
        }
        let left = intent.received - intent.refunded;
        if left == 0 {
            let charge = make_id(CHARGE_PREFIX, intent.base.n);
            let message = format!("Charge {charge} has already been refunded.");
            return Err(ApiError::invalid(Some("charge_already_refunded"), "", message).into());
        }
        let amount = params.int("amount").unwrap_or(left);
        if amount > left {
            let message =
                format!("Refund amount ({amount}) is greater than unrefunded amount on charge ({left}).");
            return Err(ApiError::invalid(None, "amount", message).into());
        }
        Ok(Change::Refund(Self {
            base: context.base(params),
            intent: intent.base.n,
            amount,
            currency: intent.currency.clone(),
            reason: params.text("reason"),
        }))
    }

    /// `succeeded` at once, as cards are, until a fault has it fail.
    pub(crate) fn status(&self, now_ms: i64) -> &str {
        self.base.became(now_ms).map_or("succeeded", |later| &later.status)
    }

    pub(crate) fn render(&self, now_ms: i64) -> Value {
        let status = self.status(now_ms);
        let failed = status == "failed";
        let failure = failed.then(|| {
            let code = self.base.becomes.as_ref().and_then(|later| later.code.as_deref());
            code.unwrap_or("expired_or_canceled_card")
        });
        let mut refund = json!({
            "id": self.id(),
            "object": Self::OBJECT,
            "amount": self.amount,
            "balance_transaction": balance_transaction_id(self),
            "charge": make_id(CHARGE_PREFIX, self.intent),
            "created": self.base.created(),
            "currency": self.currency,
            "metadata": self.base.metadata,
            "payment_intent": make_id(PaymentIntent::PREFIX, self.intent),
            "reason": self.reason,
            "receipt_number": null,
            "source_transfer_reversal": null,
            "status": status,
            "transfer_reversal": null,
        });
        if let (Some(failure), Some(fields)) = (failure, refund.as_object_mut()) {
            fields.insert("failure_reason".to_owned(), json!(failure));
            let back = make_id("txn", self.base.n) + "rf";
            fields.insert("failure_balance_transaction".to_owned(), json!(back));
        }
        refund
    }
}
