use std::collections::HashMap;

use backline_failure::{Call, Failure, Resolution};
use serde::{Deserialize, Serialize};
use stripe_client_core::StripeRequest;
use stripe_core::refund::{CreateRefund, CreateRefundReason, ListRefund, RetrieveRefund};
use stripe_shared::Refund;
use uuid::Uuid;

use super::{check_account, check_id, metadata};
use crate::lookup::{Expected, PAGE, Scope, create, find, money_difference, text_difference};
use crate::{Amount, Settlement, Stripe};

/// What is refunded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefundSource {
    /// `pi_…`.
    PaymentIntent(String),
    /// `ch_…` or `py_…`.
    Charge(String),
}

/// Stripe's reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefundReason {
    /// Charged twice.
    Duplicate,
    /// Puts the card on Stripe's block list.
    Fraudulent,
    /// Anything the customer wanted.
    RequestedByCustomer,
}

/// Give a customer money back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RefundInstruction {
    /// Of what.
    pub source: RefundSource,
    /// How much; always stated, because "the rest" changes between two attempts.
    pub amount: Amount,
    /// Connected account of a direct charge, `acct_…`.
    #[serde(default)]
    pub account: Option<String>,
    /// Why.
    #[serde(default)]
    pub reason: Option<RefundReason>,
    /// Takes the connected account's share back, too.
    #[serde(default)]
    pub reverse_transfer: bool,
    /// Gives the application fee back, too.
    #[serde(default)]
    pub refund_application_fee: bool,
}

/// A refund that exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefundRef {
    /// `re_…` or `pyr_…`.
    pub id: String,
    /// Stripe's time stamp, unix seconds.
    pub created: i64,
}

impl RefundInstruction {
    /// SHA-256, in hex, of the request's path and body.
    #[must_use]
    pub fn fingerprint(&self, operation_id: Uuid) -> String {
        crate::form::fingerprint(&self.request(operation_id).build())
    }

    fn check(&self) -> Result<(), Failure> {
        check_account(self.account.as_ref())?;
        match &self.source {
            RefundSource::PaymentIntent(id) => check_id("source", &["pi_"], id),
            RefundSource::Charge(id) => check_id("source", &["ch_", "py_"], id),
        }
    }

    fn request(&self, operation_id: Uuid) -> CreateRefund {
        let mut request = CreateRefund::new().amount(self.amount.minor()).metadata(metadata(operation_id));
        request = match &self.source {
            RefundSource::PaymentIntent(id) => request.payment_intent(id),
            RefundSource::Charge(id) => request.charge(id),
        };
        if let Some(reason) = self.reason {
            request = request.reason(match reason {
                RefundReason::Duplicate => CreateRefundReason::Duplicate,
                RefundReason::Fraudulent => CreateRefundReason::Fraudulent,
                RefundReason::RequestedByCustomer => CreateRefundReason::RequestedByCustomer,
            });
        }
        if self.reverse_transfer {
            request = request.reverse_transfer(true);
        }
        if self.refund_application_fee {
            request = request.refund_application_fee(true);
        }
        request
    }
}

impl Expected for RefundInstruction {
    type Object = Refund;
    type Found = RefundRef;

    fn metadata(refund: &Refund) -> Option<&HashMap<String, String>> {
        refund.metadata.as_ref()
    }

    fn difference(&self, refund: &Refund) -> Option<String> {
        money_difference(self.amount, refund.amount, &refund.currency).or_else(|| match &self.source {
            RefundSource::PaymentIntent(id) => text_difference(
                "payment_intent",
                id,
                refund.payment_intent.as_ref().map(|of| of.id().as_str()),
            ),
            RefundSource::Charge(id) => {
                text_difference("charge", id, refund.charge.as_ref().map(|of| of.id().as_str()))
            }
        })
    }

    fn found(refund: &Refund) -> RefundRef {
        RefundRef { id: refund.id.to_string(), created: refund.created }
    }
}

/// Presents the refund under the call's key.
///
/// # Errors
/// As the failure table says; an answer about other money is unknown.
pub async fn create_refund(
    client: &Stripe,
    call: &Call,
    instruction: &RefundInstruction,
) -> Result<RefundRef, Failure> {
    instruction.check()?;
    let request = instruction.request(call.operation_id);
    create(client, call, instruction.account.as_deref(), instruction, &request).await
}

/// Looks for the refund among those of its payment.
///
/// # Errors
/// A read that failed; it says nothing about the refund.
pub async fn find_refund(
    client: &Stripe,
    call: &Call,
    instruction: &RefundInstruction,
) -> Result<Resolution<RefundRef>, Failure> {
    instruction.check()?;
    find(client, call, instruction.account.as_deref(), instruction, Scope::Shared, |after| {
        let list = match &instruction.source {
            RefundSource::PaymentIntent(id) => ListRefund::new().payment_intent(id),
            RefundSource::Charge(id) => ListRefund::new().charge(id),
        };
        match after {
            Some(id) => list.limit(PAGE).starting_after(id),
            None => list.limit(PAGE),
        }
    })
    .await
}

/// Settled means `succeeded`; a refund may still fail weeks later, when the bank sends it back.
///
/// # Errors
/// A read that failed.
pub async fn refund_settlement(
    client: &Stripe,
    call: &Call,
    account: Option<&str>,
    id: &str,
) -> Result<Settlement, Failure> {
    check_id("id", &["re_", "pyr_"], id)?;
    let refund = client.ask(call, account, &RetrieveRefund::new(id)).await?.value;
    let status = refund.status.unwrap_or_default();
    Ok(match status.as_str() {
        "succeeded" => Settlement::Settled,
        "pending" => Settlement::Pending,
        "requires_action" => Settlement::NeedsAction { status },
        "failed" => Settlement::failed(refund.failure_reason.as_ref()),
        "canceled" => Settlement::Canceled,
        _ => Settlement::Unlisted { status },
    })
}
