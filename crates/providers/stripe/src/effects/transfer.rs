use std::collections::HashMap;

use backline_failure::{Call, Failure, Resolution};
use serde::{Deserialize, Serialize};
use stripe_client_core::StripeRequest;
use stripe_connect::transfer::{CreateTransfer, ListTransfer, RetrieveTransfer};
use stripe_shared::Transfer;
use uuid::Uuid;

use super::{check_id, metadata};
use crate::lookup::{Expected, PAGE, Scope, create, find, money_difference, text_difference};
use crate::settlement::availability;
use crate::{Amount, Settlement, Stripe};

/// Move money from the platform's balance to a connected account.
///
/// There is no `source_transaction`: Stripe would then choose the transfer group, and the group is our lookup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransferInstruction {
    /// How much.
    pub amount: Amount,
    /// Connected account, `acct_…`.
    pub destination: String,
    /// For people who read the dashboard.
    #[serde(default)]
    pub description: Option<String>,
}

/// A transfer that exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferRef {
    /// `tr_…`.
    pub id: String,
    /// Stripe's time stamp, unix seconds.
    pub created: i64,
}

impl TransferInstruction {
    /// SHA-256, in hex, of the request's path and body: equal for equal bytes on the wire.
    #[must_use]
    pub fn fingerprint(&self, operation_id: Uuid) -> String {
        crate::form::fingerprint(&self.request(operation_id).build())
    }

    fn check(&self) -> Result<(), Failure> {
        check_id("destination", &["acct_"], &self.destination)
    }

    fn request(&self, operation_id: Uuid) -> CreateTransfer {
        let request = CreateTransfer::new(self.amount.currency().wire(), &self.destination)
            .amount(self.amount.minor())
            .metadata(metadata(operation_id))
            .transfer_group(operation_id.to_string());
        match &self.description {
            Some(description) => request.description(description),
            None => request,
        }
    }
}

impl Expected for TransferInstruction {
    type Object = Transfer;
    type Found = TransferRef;

    fn metadata(transfer: &Transfer) -> Option<&HashMap<String, String>> {
        Some(&transfer.metadata)
    }

    fn difference(&self, transfer: &Transfer) -> Option<String> {
        let destination = transfer.destination.as_ref().map(|account| account.id().as_str());
        money_difference(self.amount, transfer.amount, &transfer.currency)
            .or_else(|| text_difference("destination", &self.destination, destination))
    }

    fn found(transfer: &Transfer) -> TransferRef {
        TransferRef { id: transfer.id.to_string(), created: transfer.created }
    }
}

/// Presents the transfer under the call's key.
///
/// # Errors
/// As the failure table says; an answer about other money is unknown.
pub async fn create_transfer(
    client: &Stripe,
    call: &Call,
    instruction: &TransferInstruction,
) -> Result<TransferRef, Failure> {
    instruction.check()?;
    create(client, call, None, instruction, &instruction.request(call.operation_id)).await
}

/// Looks for the transfer by its group, which is the operation id.
///
/// # Errors
/// A read that failed; it says nothing about the transfer.
pub async fn find_transfer(
    client: &Stripe,
    call: &Call,
    instruction: &TransferInstruction,
) -> Result<Resolution<TransferRef>, Failure> {
    find(client, call, None, instruction, Scope::Own, |after| {
        let list = ListTransfer::new().transfer_group(call.operation_id.to_string()).limit(PAGE);
        match after {
            Some(id) => list.starting_after(id),
            None => list,
        }
    })
    .await
}

/// Settled means that its balance transaction is available and nothing of it was reversed.
///
/// # Errors
/// A read that failed.
pub async fn transfer_settlement(client: &Stripe, call: &Call, id: &str) -> Result<Settlement, Failure> {
    check_id("id", &["tr_"], id)?;
    let request = RetrieveTransfer::new(id).expand(["balance_transaction".to_owned()]);
    let transfer = client.ask(call, None, &request).await?.value;
    if transfer.amount_reversed > 0 {
        return Ok(Settlement::Reversed { minor: transfer.amount_reversed });
    }
    availability(client, call, transfer.balance_transaction.as_ref()).await
}
