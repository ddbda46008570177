//! The events this worker reads and writes.

use backline_envelope::Event;
use backline_stripe::{
    PaymentIntentInstruction, PayoutInstruction, RefundInstruction, ReversalInstruction, TransferInstruction,
};
use serde::{Deserialize, Serialize};

/// What to pay, pinned when it was authorized (obligation E19): amount in minor units, currency, payee, account.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Instruction {
    /// From the platform's balance to a connected account.
    Transfer(TransferInstruction),
    /// From a Stripe balance to a bank account.
    Payout(PayoutInstruction),
    /// From a customer.
    PaymentIntent(PaymentIntentInstruction),
}

/// Somebody was allowed to make a payment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PaymentAuthorized {
    /// The application's id of the payment; one payment is one operation.
    pub payment_id: String,
    /// Who or what authorized it, for the audit.
    pub authorization: String,
    /// What to pay.
    pub instruction: Instruction,
}

/// Somebody was allowed to give a customer money back.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RefundAuthorized {
    /// The payment that is refunded.
    pub payment_id: String,
    /// The application's id of this refund; a payment may have several.
    pub refund_id: String,
    /// Who or what authorized it.
    pub authorization: String,
    /// What to refund.
    pub instruction: RefundInstruction,
}

/// Somebody was allowed to take a transfer back: a new governed action, never an undo of the old one (obligation E22).
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ReversalAuthorized {
    /// The payment that is reversed.
    pub payment_id: String,
    /// The application's id of this reversal.
    pub reversal_id: String,
    /// Who or what authorized it.
    pub authorization: String,
    /// What to reverse.
    pub instruction: ReversalInstruction,
}

/// The provider accepted the instruction; settlement is another state and another event.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PaymentSubmitted {
    /// The application's id.
    pub payment_id: String,
    /// Operation kind.
    pub kind: String,
    /// The provider's object.
    pub provider_ref: String,
}

/// The provider refused for good; nothing was applied.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PaymentRejected {
    /// The application's id.
    pub payment_id: String,
    /// Operation kind.
    pub kind: String,
    /// Stable code.
    pub code: String,
}

/// The money is where it should be, as far as the provider knows today.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PaymentSettled {
    /// The application's id.
    pub payment_id: String,
    /// The provider's object.
    pub provider_ref: String,
}

/// The money will not arrive, or came back.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PaymentFailed {
    /// The application's id.
    pub payment_id: String,
    /// The provider's object.
    pub provider_ref: String,
    /// What the provider says.
    pub reason: String,
}

impl Event for PaymentAuthorized {
    const TYPE: &'static str = "PaymentAuthorized";
    const VERSION: i32 = 1;
}
impl Event for RefundAuthorized {
    const TYPE: &'static str = "RefundAuthorized";
    const VERSION: i32 = 1;
}
impl Event for ReversalAuthorized {
    const TYPE: &'static str = "ReversalAuthorized";
    const VERSION: i32 = 1;
}
impl Event for PaymentSubmitted {
    const TYPE: &'static str = "PaymentSubmitted";
    const VERSION: i32 = 1;
}
impl Event for PaymentRejected {
    const TYPE: &'static str = "PaymentRejected";
    const VERSION: i32 = 1;
}
impl Event for PaymentSettled {
    const TYPE: &'static str = "PaymentSettled";
    const VERSION: i32 = 1;
}
impl Event for PaymentFailed {
    const TYPE: &'static str = "PaymentFailed";
    const VERSION: i32 = 1;
}
