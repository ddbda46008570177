//! Paths of the API.

use super::error::ApiError;
use super::params::Param;
use super::specs;

/// A named operation; ids are borrowed from the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endpoint<'a> {
    CreateTransfer,
    CreateReversal { transfer: &'a str },
    CreatePayout,
    CreateIntent,
    ConfirmIntent(&'a str),
    CancelIntent(&'a str),
    CaptureIntent(&'a str),
    CreateRefund,
    Transfer(&'a str),
    Transfers,
    Reversal { transfer: &'a str, id: &'a str },
    Reversals { transfer: &'a str },
    Payout(&'a str),
    Payouts,
    Intent(&'a str),
    Intents,
    SearchIntents,
    Refund(&'a str),
    Refunds,
    BalanceTransaction(&'a str),
    Balance,
    Account(Option<&'a str>),
}

impl<'a> Endpoint<'a> {
    /// The endpoint behind a method and path.
    pub(crate) fn route(method: &str, path: &'a str) -> Result<Self, ApiError> {
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        Ok(match (method, parts.as_slice()) {
            ("POST", ["v1", "transfers"]) => Self::CreateTransfer,
            ("POST", ["v1", "transfers", transfer, "reversals"]) => Self::CreateReversal { transfer },
            ("POST", ["v1", "payouts"]) => Self::CreatePayout,
            ("POST", ["v1", "payment_intents"]) => Self::CreateIntent,
            ("POST", ["v1", "payment_intents", id, "confirm"]) => Self::ConfirmIntent(id),
            ("POST", ["v1", "payment_intents", id, "cancel"]) => Self::CancelIntent(id),
            ("POST", ["v1", "payment_intents", id, "capture"]) => Self::CaptureIntent(id),
            ("POST", ["v1", "refunds"]) => Self::CreateRefund,
            ("GET", ["v1", "transfers"]) => Self::Transfers,
            ("GET", ["v1", "transfers", id]) => Self::Transfer(id),
            ("GET", ["v1", "transfers", transfer, "reversals"]) => Self::Reversals { transfer },
            ("GET", ["v1", "transfers", transfer, "reversals", id]) => Self::Reversal { transfer, id },
            ("GET", ["v1", "payouts"]) => Self::Payouts,
            ("GET", ["v1", "payouts", id]) => Self::Payout(id),
            ("GET", ["v1", "payment_intents"]) => Self::Intents,
            ("GET", ["v1", "payment_intents", "search"]) => Self::SearchIntents,
            ("GET", ["v1", "payment_intents", id]) => Self::Intent(id),
            ("GET", ["v1", "refunds"]) => Self::Refunds,
            ("GET", ["v1", "refunds", id]) => Self::Refund(id),
            ("GET", ["v1", "balance_transactions", id]) => Self::BalanceTransaction(id),
            ("GET", ["v1", "balance"]) => Self::Balance,
            ("GET", ["v1", "account"]) => Self::Account(None),
            ("GET", ["v1", "accounts", id]) => Self::Account(Some(id)),
            _ => {
                let message = format!("Unrecognized request URL ({method}: {path}).");
                let mut error = ApiError::invalid(None, "", message);
                error.status = 404;
                return Err(error);
            }
        })
    }

    /// Kind of object that a POST creates, with the verb when it changes one. Kinds are summed apart.
    pub(crate) fn kind(self) -> Option<&'static str> {
        match self {
            Self::CreateTransfer => Some("transfer"),
            Self::CreateReversal { .. } => Some("transfer_reversal"),
            Self::CreatePayout => Some("payout"),
            Self::CreateIntent => Some("payment_intent"),
            Self::ConfirmIntent(_) => Some("payment_intent.confirm"),
            Self::CancelIntent(_) => Some("payment_intent.cancel"),
            Self::CaptureIntent(_) => Some("payment_intent.capture"),
            Self::CreateRefund => Some("refund"),
            _ => None,
        }
    }

    /// Parameters that the endpoint takes.
    pub(crate) fn params(self) -> &'static [Param] {
        match self {
            Self::CreateTransfer => specs::TRANSFER,
            Self::CreateReversal { .. } => specs::REVERSAL,
            Self::CreatePayout => specs::PAYOUT,
            Self::CreateIntent => specs::INTENT,
            Self::ConfirmIntent(_) => specs::CONFIRM,
            Self::CancelIntent(_) => specs::CANCEL,
            Self::CaptureIntent(_) => specs::CAPTURE,
            Self::CreateRefund => specs::REFUND,
            Self::Transfers => specs::TRANSFERS,
            Self::Reversals { .. } => specs::PAGE,
            Self::Payouts => specs::PAYOUTS,
            Self::Intents => specs::INTENTS,
            Self::SearchIntents => specs::SEARCH,
            Self::Refunds => specs::REFUNDS,
            Self::Transfer(_)
            | Self::Reversal { .. }
            | Self::Payout(_)
            | Self::Intent(_)
            | Self::Refund(_)
            | Self::BalanceTransaction(_)
            | Self::Balance
            | Self::Account(_) => specs::RETRIEVE,
        }
    }
}
