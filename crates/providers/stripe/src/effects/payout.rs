use std::collections::HashMap;

use backline_failure::{Call, Failure, Resolution};
use serde::{Deserialize, Serialize};
use stripe_client_core::StripeRequest;
use stripe_core::payout::{CreatePayout, CreatePayoutMethod, ListPayout, RetrievePayout};
use stripe_shared::Payout;
use stripe_types::Expandable;
use uuid::Uuid;

use super::{check_account, check_id, invalid, metadata};
use crate::lookup::{Expected, PAGE, Scope, create, find, money_difference, text_difference};
use crate::{Amount, CreatedWindow, Settlement, Stripe};

/// How fast a payout goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PayoutMethod {
    /// The bank's usual days.
    #[default]
    Standard,
    /// Minutes, to a card or bank that takes it, for a fee.
    Instant,
}

impl PayoutMethod {
    fn as_str(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Instant => "instant",
        }
    }
}

/// Send a Stripe balance to a bank account or card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PayoutInstruction {
    /// How much.
    pub amount: Amount,
    /// Connected account whose balance is paid out, `acct_…`; the platform's own if absent.
    #[serde(default)]
    pub account: Option<String>,
    /// Bank account or card, `ba_…` or `card_…`; the account's default if absent.
    #[serde(default)]
    pub destination: Option<String>,
    /// How fast.
    #[serde(default)]
    pub method: PayoutMethod,
    /// What the bank statement says; at most 22 characters.
    #[serde(default)]
    pub statement_descriptor: Option<String>,
}

/// A payout that exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PayoutRef {
    /// `po_…`.
    pub id: String,
    /// Stripe's time stamp, unix seconds.
    pub created: i64,
    /// When the bank is expected to have it, unix seconds.
    pub arrival_date: i64,
}

impl PayoutInstruction {
    /// SHA-256, in hex, of the request's path and body.
    #[must_use]
    pub fn fingerprint(&self, operation_id: Uuid) -> String {
        crate::form::fingerprint(&self.request(operation_id).build())
    }

    fn check(&self) -> Result<(), Failure> {
        check_account(self.account.as_ref())?;
        if let Some(destination) = &self.destination {
            check_id("destination", &["ba_", "card_"], destination)?;
        }
        if self.statement_descriptor.as_ref().is_some_and(|text| text.chars().count() > 22) {
            return Err(invalid("statement_descriptor is longer than 22 characters"));
        }
        self.amount.check_payout().map_err(|error| invalid(error.to_string()))
    }

    fn request(&self, operation_id: Uuid) -> CreatePayout {
        let method = match self.method {
            PayoutMethod::Standard => CreatePayoutMethod::Standard,
            PayoutMethod::Instant => CreatePayoutMethod::Instant,
        };
        let mut request = CreatePayout::new(self.amount.minor(), self.amount.currency().wire())
            .metadata(metadata(operation_id))
            .method(method);
        if let Some(destination) = &self.destination {
            request = request.destination(destination);
        }
        if let Some(text) = &self.statement_descriptor {
            request = request.statement_descriptor(text);
        }
        request
    }
}

impl Expected for PayoutInstruction {
    type Object = Payout;
    type Found = PayoutRef;

    fn metadata(payout: &Payout) -> Option<&HashMap<String, String>> {
        payout.metadata.as_ref()
    }

    fn difference(&self, payout: &Payout) -> Option<String> {
        let destination = payout.destination.as_ref().map(Expandable::id).map(|id| id.to_string());
        money_difference(self.amount, payout.amount, &payout.currency)
            .or_else(|| text_difference("method", self.method.as_str(), Some(&payout.method)))
            .or_else(|| text_difference("destination", self.destination.as_ref()?, destination.as_deref()))
    }

    fn found(payout: &Payout) -> PayoutRef {
        PayoutRef { id: payout.id.to_string(), created: payout.created, arrival_date: payout.arrival_date }
    }
}

/// Presents the payout under the call's key.
///
/// # Errors
/// As the failure table says; an answer about other money is unknown.
pub async fn create_payout(
    client: &Stripe,
    call: &Call,
    instruction: &PayoutInstruction,
) -> Result<PayoutRef, Failure> {
    instruction.check()?;
    let request = instruction.request(call.operation_id);
    create(client, call, instruction.account.as_deref(), instruction, &request).await
}

/// Looks for the payout among those created in the window: payouts have no filter of ours.
///
/// # Errors
/// A read that failed; it says nothing about the payout.
pub async fn find_payout(
    client: &Stripe,
    call: &Call,
    instruction: &PayoutInstruction,
    window: CreatedWindow,
) -> Result<Resolution<PayoutRef>, Failure> {
    check_account(instruction.account.as_ref())?;
    find(client, call, instruction.account.as_deref(), instruction, Scope::Shared, |after| {
        let list = ListPayout::new().created(window.range()).limit(PAGE);
        match after {
            Some(id) => list.starting_after(id),
            None => list,
        }
    })
    .await
}

/// Settled means `paid`; a payout that bounced afterwards reads `failed`.
///
/// # Errors
/// A read that failed.
pub async fn payout_settlement(
    client: &Stripe,
    call: &Call,
    account: Option<&str>,
    id: &str,
) -> Result<Settlement, Failure> {
    check_id("id", &["po_"], id)?;
    let payout = client.ask(call, account, &RetrievePayout::new(id)).await?.value;
    Ok(match payout.status.as_str() {
        "paid" if payout.reversed_by.is_some() => Settlement::Reversed { minor: payout.amount },
        "paid" => Settlement::Settled,
        "pending" | "in_transit" => Settlement::Pending,
        "failed" => Settlement::failed(payout.failure_code.as_ref()),
        "canceled" => Settlement::Canceled,
        _ => Settlement::Unlisted { status: payout.status },
    })
}
