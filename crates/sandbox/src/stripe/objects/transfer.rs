//! Transfers: money from the platform to a connected account.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Context, Executed, balance_transaction_id};
use crate::config::AccountState;
use crate::stripe::error::ApiError;
use crate::stripe::form::Params;
use crate::stripe::table::{Base, Record, make_id};
use crate::stripe::world::{Change, World};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Transfer {
    #[serde(flatten)]
    pub(crate) base: Base,
    pub(crate) amount: i64,
    pub(crate) currency: String,
    pub(crate) destination: String,
    pub(crate) description: Option<String>,
    pub(crate) source_transaction: Option<String>,
    pub(crate) source_type: Option<String>,
    pub(crate) transfer_group: Option<String>,
    /// Sum of reversals, minor units.
    pub(crate) reversed: i64,
}

impl Record for Transfer {
    const PREFIX: &'static str = "tr";
    const OBJECT: &'static str = "transfer";

    fn base(&self) -> &Base {
        &self.base
    }

    fn keys(&self) -> Vec<(&'static str, String)> {
        let mut keys = vec![("destination", self.destination.clone())];
        keys.extend(self.transfer_group.clone().map(|group| ("transfer_group", group)));
        keys
    }
}

impl Transfer {
    pub(crate) fn create(world: &World, params: &Params, context: &Context) -> Executed {
        let destination = params.text("destination").unwrap_or_default();
        let currency = params.text("currency").unwrap_or_default();
        let Some(amount) = params.int("amount") else {
            // Stripe takes the amount from `source_transaction` then; the sandbox keeps no such charges.
            return Err(ApiError::invalid(
                Some("parameter_missing"),
                "amount",
                "Missing required param: amount.",
            )
            .into());
        };
        match world.account_state(&destination) {
            AccountState::Missing => {
                return Err(ApiError::missing(400, "destination", &destination, "destination").into());
            }
            AccountState::Blocked => {
                let message = "Your destination account needs to have at least one of the following \
                               capabilities enabled: transfers, crypto_transfers, legacy_payments";
                let code = Some("insufficient_capabilities_for_transfer");
                return Err(ApiError::invalid(code, "", message).into());
            }
            AccountState::Active | AccountState::PayoutsDisabled => {}
        }
        if !destination.starts_with("acct_") {
            return Err(ApiError::missing(400, "destination", &destination, "destination").into());
        }
        if world.spendable(context.account.as_deref(), &currency).is_some_and(|funds| funds < amount) {
            return Err(insufficient().into());
        }
        Ok(Change::Transfer(Self {
            base: context.base(params),
            amount,
            currency,
            destination,
            description: params.text("description"),
            source_transaction: params.text("source_transaction"),
            source_type: params.text("source_type"),
            transfer_group: params.text("transfer_group"),
            reversed: 0,
        }))
    }

    pub(crate) fn render(&self, world: &World) -> Value {
        let id = self.id();
        let mut reversals: Vec<Value> = Vec::new();
        if self.reversed > 0 {
            let own = world.reversals.rows().filter(|reversal| reversal.transfer == self.base.n);
            reversals.extend(own.map(super::Reversal::render));
            reversals.reverse();
        }
        json!({
            "id": id,
            "object": Self::OBJECT,
            "amount": self.amount,
            "amount_reversed": self.reversed,
            "balance_transaction": balance_transaction_id(self),
            "created": self.base.created(),
            "currency": self.currency,
            "description": self.description,
            "destination": self.destination,
            "destination_payment": make_id("py", self.base.n),
            "livemode": false,
            "metadata": self.base.metadata,
            "reversals": {
                "object": "list",
                "data": reversals,
                "has_more": false,
                "total_count": reversals.len(),
                "url": format!("/v1/transfers/{id}/reversals"),
            },
            "reversed": self.reversed >= self.amount,
            "source_transaction": self.source_transaction,
            "source_type": self.source_type.as_deref().unwrap_or("card"),
            "transfer_group": self.transfer_group,
        })
    }
}

/// The executed 400 that is definite: nothing moved.
pub(crate) fn insufficient() -> ApiError {
    let message = "You have insufficient available funds in your Stripe account.";
    ApiError::invalid(Some("balance_insufficient"), "", message)
}
