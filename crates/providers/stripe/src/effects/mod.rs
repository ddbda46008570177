//! One file per effect: its frozen instruction, its request, its lookup and its settlement.

mod payment_intent;
mod payout;
mod refund;
mod reversal;
mod transfer;

use std::collections::HashMap;

use backline_failure::Failure;
use uuid::Uuid;

pub use payment_intent::{
    Confirmation, PaymentIntentInstruction, PaymentIntentRef, create_payment_intent, find_payment_intent,
    payment_intent_settlement,
};
pub use payout::{PayoutInstruction, PayoutMethod, PayoutRef, create_payout, find_payout, payout_settlement};
pub use refund::{
    RefundInstruction, RefundReason, RefundRef, RefundSource, create_refund, find_refund, refund_settlement,
};
pub use reversal::{ReversalInstruction, ReversalRef, create_reversal, find_reversal, reversal_settlement};
pub use transfer::{TransferInstruction, TransferRef, create_transfer, find_transfer, transfer_settlement};

use crate::OPERATION_ID;

fn metadata(operation_id: Uuid) -> HashMap<String, String> {
    HashMap::from([(OPERATION_ID.to_owned(), operation_id.to_string())])
}

/// Checks an id before it becomes part of a path or header: inputs come from elsewhere, and `acct_1/../x` is one too.
fn check_id(field: &str, prefixes: &[&str], id: &str) -> Result<(), Failure> {
    let shaped = prefixes.iter().any(|prefix| id.len() > prefix.len() && id.starts_with(prefix))
        && id.len() <= 255
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if shaped {
        Ok(())
    } else {
        Err(invalid(format!("{field} is not an id starting with {}", prefixes.join(" or "))))
    }
}

fn check_account(account: Option<&String>) -> Result<(), Failure> {
    account.map_or(Ok(()), |account| check_id("account", &["acct_"], account))
}

/// Nothing was sent, and no attempt with these inputs ever will be.
fn invalid(detail: impl AsRef<str>) -> Failure {
    Failure::rejected("stripe.invalid_instruction").with_detail(detail)
}
