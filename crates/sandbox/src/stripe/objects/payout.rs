//! Payouts: money from an account to its bank.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::transfer::insufficient;
use super::{Context, Executed, balance_transaction_id};
use crate::config::AccountState;
use crate::stripe::error::ApiError;
use crate::stripe::form::Params;
use crate::stripe::table::{Base, Record, make_id};
use crate::stripe::world::{Change, World};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Payout {
    #[serde(flatten)]
    pub(crate) base: Base,
    pub(crate) amount: i64,
    pub(crate) currency: String,
    pub(crate) description: Option<String>,
    pub(crate) destination: Option<String>,
    pub(crate) method: Option<String>,
    pub(crate) source_type: Option<String>,
    pub(crate) statement_descriptor: Option<String>,
}

impl Record for Payout {
    const PREFIX: &'static str = "po";
    const OBJECT: &'static str = "payout";

    fn base(&self) -> &Base {
        &self.base
    }

    fn keys(&self) -> Vec<(&'static str, String)> {
        self.destination.clone().map(|to| ("destination", to)).into_iter().collect()
    }
}

impl Payout {
    pub(crate) fn create(world: &World, params: &Params, context: &Context) -> Executed {
        let account = context.account.as_deref();
        let currency = params.text("currency").unwrap_or_default();
        let amount = params.int("amount").unwrap_or_default();
        if account.is_some_and(|id| world.account_state(id) == AccountState::PayoutsDisabled) {
            let message = "Payouts are not enabled for this account.";
            return Err(ApiError::invalid(Some("payouts_not_allowed"), "", message).into());
        }
        if world.spendable(account, &currency).is_some_and(|funds| funds < amount) {
            return Err(insufficient().into());
        }
        Ok(Change::Payout(Self {
            base: context.base(params),
            amount,
            currency,
            description: params.text("description"),
            destination: params.text("destination"),
            method: params.text("method"),
            source_type: params.text("source_type"),
            statement_descriptor: params.text("statement_descriptor"),
        }))
    }

    /// `pending`, `in_transit`, `paid`, or what the object becomes by a fault.
    pub(crate) fn status(&self, world: &World, now_ms: i64) -> &str {
        match (self.base.became(now_ms), world.steps(&self.id(), &self.base, now_ms)) {
            (Some(later), _) => &later.status,
            (None, ..1) => "pending",
            (None, 1) => "in_transit",
            (None, 2..) => "paid",
        }
    }

    pub(crate) fn render(&self, world: &World, now_ms: i64) -> Value {
        let status = self.status(world, now_ms);
        let failed = status == "failed";
        let failure_code = failed.then(|| {
            let code = self.base.becomes.as_ref().and_then(|later| later.code.as_deref());
            code.unwrap_or("account_closed")
        });
        json!({
            "id": self.id(),
            "object": Self::OBJECT,
            "amount": self.amount,
            "application_fee": null,
            "application_fee_amount": null,
            "arrival_date": (self.base.created_ms + 2 * world.step_ms()) / 1_000,
            "automatic": false,
            "balance_transaction": balance_transaction_id(self),
            "created": self.base.created(),
            "currency": self.currency,
            "description": self.description,
            "destination": self.destination.clone().unwrap_or_else(|| make_id("ba", self.base.n)),
            "failure_balance_transaction": failed.then(|| make_id("txn", self.base.n) + "pf"),
            "failure_code": failure_code,
            "failure_message": failed.then_some("The bank account could not be credited."),
            "livemode": false,
            "metadata": self.base.metadata,
            "method": self.method.as_deref().unwrap_or("standard"),
            "original_payout": null,
            "reconciliation_status": "not_applicable",
            "reversed_by": null,
            "source_type": self.source_type.as_deref().unwrap_or("card"),
            "statement_descriptor": self.statement_descriptor,
            "status": status,
            "trace_id": null,
            "type": "bank_account",
        })
    }
}
