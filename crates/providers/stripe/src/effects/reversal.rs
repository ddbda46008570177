use std::collections::HashMap;

use backline_failure::{Call, Failure, Resolution};
use serde::{Deserialize, Serialize};
use stripe_client_core::StripeRequest;
use stripe_connect::transfer_reversal::{
    CreateIdTransferReversal, ListIdTransferReversal, RetrieveTransferReversal,
};
use stripe_shared::TransferReversal;
use uuid::Uuid;

use super::{check_id, metadata};
use crate::lookup::{Expected, PAGE, Scope, create, find, money_difference, text_difference};
use crate::settlement::availability;
use crate::{Amount, Settlement, Stripe};

/// Take back all or part of a transfer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReversalInstruction {
    /// The transfer, `tr_…`.
    pub transfer: String,
    /// How much; always stated, because "the rest" changes between two attempts.
    pub amount: Amount,
}

/// A reversal that exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReversalRef {
    /// `trr_…`.
    pub id: String,
    /// The transfer that it belongs to; needed to read it again.
    pub transfer: String,
    /// Stripe's time stamp, unix seconds.
    pub created: i64,
}

impl ReversalInstruction {
    /// SHA-256, in hex, of the request's path and body.
    #[must_use]
    pub fn fingerprint(&self, operation_id: Uuid) -> String {
        crate::form::fingerprint(&self.request(operation_id).build())
    }

    fn check(&self) -> Result<(), Failure> {
        check_id("transfer", &["tr_"], &self.transfer)
    }

    fn request(&self, operation_id: Uuid) -> CreateIdTransferReversal {
        CreateIdTransferReversal::new(self.transfer.as_str())
            .amount(self.amount.minor())
            .metadata(metadata(operation_id))
    }
}

impl Expected for ReversalInstruction {
    type Object = TransferReversal;
    type Found = ReversalRef;

    fn metadata(reversal: &TransferReversal) -> Option<&HashMap<String, String>> {
        reversal.metadata.as_ref()
    }

    fn difference(&self, reversal: &TransferReversal) -> Option<String> {
        money_difference(self.amount, reversal.amount, &reversal.currency)
            .or_else(|| text_difference("transfer", &self.transfer, Some(reversal.transfer.id().as_str())))
    }

    fn found(reversal: &TransferReversal) -> ReversalRef {
        ReversalRef {
            id: reversal.id.to_string(),
            transfer: reversal.transfer.id().to_string(),
            created: reversal.created,
        }
    }
}

/// Presents the reversal under the call's key.
///
/// # Errors
/// As the failure table says; an answer about other money is unknown.
pub async fn create_reversal(
    client: &Stripe,
    call: &Call,
    instruction: &ReversalInstruction,
) -> Result<ReversalRef, Failure> {
    instruction.check()?;
    create(client, call, None, instruction, &instruction.request(call.operation_id)).await
}

/// Looks for the reversal among those of its transfer.
///
/// # Errors
/// A read that failed; it says nothing about the reversal.
pub async fn find_reversal(
    client: &Stripe,
    call: &Call,
    instruction: &ReversalInstruction,
) -> Result<Resolution<ReversalRef>, Failure> {
    instruction.check()?;
    find(client, call, None, instruction, Scope::Shared, |after| {
        let list = ListIdTransferReversal::new(instruction.transfer.as_str()).limit(PAGE);
        match after {
            Some(id) => list.starting_after(id),
            None => list,
        }
    })
    .await
}

/// Settled means that the money is available on the platform's balance again.
///
/// # Errors
/// A read that failed.
pub async fn reversal_settlement(
    client: &Stripe,
    call: &Call,
    reversal: &ReversalRef,
) -> Result<Settlement, Failure> {
    check_id("id", &["trr_"], &reversal.id)?;
    check_id("transfer", &["tr_"], &reversal.transfer)?;
    let request = RetrieveTransferReversal::new(reversal.id.as_str(), reversal.transfer.as_str())
        .expand(["balance_transaction".to_owned()]);
    let reversal = client.ask(call, None, &request).await?.value;
    availability(client, call, reversal.balance_transaction.as_ref()).await
}
