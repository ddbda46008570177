//! Money objects: what a call creates, and how the API shows it.

mod account;
mod balance;
mod payment_intent;
mod payout;
mod refund;
mod reversal;
mod transfer;

pub(crate) use self::account::{self_account, show_account};
pub(crate) use balance::{balance_transaction, balance_transaction_id, show_balance};
pub(crate) use payment_intent::PaymentIntent;
pub(crate) use payout::Payout;
pub(crate) use refund::Refund;
pub(crate) use reversal::Reversal;
pub(crate) use transfer::{Transfer, insufficient};

use super::error::ApiError;
use super::form::Params;
use super::table::Base;
use super::world::Change;
use crate::faults::Becomes;

/// Circumstances of one executing call.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    pub(crate) number: u64,
    pub(crate) account: Option<String>,
    pub(crate) now_ms: i64,
    pub(crate) hide_ms: i64,
    pub(crate) becomes: Option<Becomes>,
}

impl Context {
    fn base(&self, params: &Params) -> Base {
        Base {
            n: self.number,
            account: self.account.clone(),
            created_ms: self.now_ms,
            visible_ms: self.now_ms.saturating_add(self.hide_ms),
            becomes: self.becomes.clone(),
            metadata: params.nested("metadata"),
        }
    }
}

/// An executed call that answered with an error, and what it changed all the same.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) error: ApiError,
    pub(crate) change: Option<Change>,
}

impl From<ApiError> for Box<Refused> {
    fn from(error: ApiError) -> Self {
        Self::new(Refused { error, change: None })
    }
}

/// Outcome of executing a POST.
pub(crate) type Executed = Result<Change, Box<Refused>>;
