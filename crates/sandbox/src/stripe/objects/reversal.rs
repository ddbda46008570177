//! Transfer reversals: money back from a connected account.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Context, Executed, balance_transaction_id};
use crate::stripe::error::ApiError;
use crate::stripe::form::Params;
use crate::stripe::table::{Base, Record, make_id};
use crate::stripe::world::{Change, World};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Reversal {
    #[serde(flatten)]
    pub(crate) base: Base,
    /// Number of the reversed transfer.
    pub(crate) transfer: u64,
    pub(crate) amount: i64,
    pub(crate) currency: String,
}

impl Record for Reversal {
    const PREFIX: &'static str = "trr";
    const OBJECT: &'static str = "transfer_reversal";

    fn base(&self) -> &Base {
        &self.base
    }

    fn keys(&self) -> Vec<(&'static str, String)> {
        vec![("transfer", make_id("tr", self.transfer))]
    }
}

impl Reversal {
    pub(crate) fn create(world: &World, id: &str, params: &Params, context: &Context) -> Executed {
        let transfer = world
            .transfers
            .find(id, context.account.as_deref())
            .ok_or_else(|| ApiError::missing(404, "transfer", id, "id"))?;
        let left = transfer.amount - transfer.reversed;
        let amount = params.int("amount").unwrap_or(left);
        if left == 0 {
            return Err(
                ApiError::invalid(None, "", format!("Transfer {id} is already fully reversed.")).into()
            );
        }
        if amount > left {
            let message = format!("Reversal amount ({amount}) is greater than unreversed amount ({left}).");
            return Err(ApiError::invalid(None, "amount", message).into());
        }
        Ok(Change::Reversal(Self {
            base: context.base(params),
            transfer: transfer.base.n,
            amount,
            currency: transfer.currency.clone(),
        }))
    }

    pub(crate) fn render(&self) -> Value {
        json!({
            "id": self.id(),
            "object": Self::OBJECT,
            "amount": self.amount,
            "balance_transaction": balance_transaction_id(self),
            "created": self.base.created(),
            "currency": self.currency,
            "destination_payment_refund": make_id("pyr", self.base.n),
            "metadata": self.base.metadata,
            "source_refund": null,
            "transfer": make_id("tr", self.transfer),
        })
    }
}
