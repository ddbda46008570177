use std::collections::HashMap;

use backline_failure::{Call, Failure, Resolution};
use serde::{Deserialize, Serialize};
use stripe_client_core::StripeRequest;
use stripe_core::payment_intent::{
    CreatePaymentIntent, CreatePaymentIntentOffSession, ListPaymentIntent, RetrievePaymentIntent,
};
use stripe_shared::{PaymentIntent, PaymentIntentStatus};
use uuid::Uuid;

use super::{check_account, check_id, invalid, metadata};
use crate::lookup::{Expected, PAGE, Scope, create, find, money_difference, text_difference};
use crate::{Amount, CreatedWindow, Settlement, Stripe};

/// Whether creating it also charges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confirmation {
    /// The application confirms it with the customer present.
    Later,
    /// Charged at once with the stored payment method; a bank that wants the customer is a refusal.
    OffSession,
}

/// Ask a customer for money.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaymentIntentInstruction {
    /// How much.
    pub amount: Amount,
    /// Whether creating it also charges.
    pub confirmation: Confirmation,
    /// Connected account of a direct charge, `acct_…`.
    #[serde(default)]
    pub account: Option<String>,
    /// `cus_…`; also what makes the lookup short.
    #[serde(default)]
    pub customer: Option<String>,
    /// `pm_…`, `card_…` or `src_…`; required to charge at once.
    #[serde(default)]
    pub payment_method: Option<String>,
    /// For people who read the dashboard.
    #[serde(default)]
    pub description: Option<String>,
}

/// A payment intent that exists. Its client secret is not kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaymentIntentRef {
    /// `pi_…`.
    pub id: String,
    /// Stripe's time stamp, unix seconds.
    pub created: i64,
    /// Stripe's status when it was read.
    pub status: String,
}

impl PaymentIntentInstruction {
    /// SHA-256, in hex, of the request's path and body.
    #[must_use]
    pub fn fingerprint(&self, operation_id: Uuid) -> String {
        crate::form::fingerprint(&self.request(operation_id).build())
    }

    fn check(&self) -> Result<(), Failure> {
        check_account(self.account.as_ref())?;
        if let Some(customer) = &self.customer {
            check_id("customer", &["cus_"], customer)?;
        }
        match &self.payment_method {
            Some(id) => check_id("payment_method", &["pm_", "card_", "src_"], id),
            None if self.confirmation == Confirmation::OffSession => {
                Err(invalid("payment_method is required to charge at once"))
            }
            None => Ok(()),
        }
    }

    fn request(&self, operation_id: Uuid) -> CreatePaymentIntent {
        let mut request = CreatePaymentIntent::new(self.amount.minor(), self.amount.currency().wire())
            .metadata(metadata(operation_id))
            .transfer_group(operation_id.to_string());
        if let Some(customer) = &self.customer {
            request = request.customer(customer);
        }
        if let Some(payment_method) = &self.payment_method {
            request = request.payment_method(payment_method);
        }
        if let Some(description) = &self.description {
            request = request.description(description);
        }
        if self.confirmation == Confirmation::OffSession {
            request = request
                .confirm(true)
                .off_session(CreatePaymentIntentOffSession::Bool(true))
                .error_on_requires_action(true);
        }
        request
    }
}

impl Expected for PaymentIntentInstruction {
    type Object = PaymentIntent;
    type Found = PaymentIntentRef;

    fn metadata(intent: &PaymentIntent) -> Option<&HashMap<String, String>> {
        Some(&intent.metadata)
    }

    fn difference(&self, intent: &PaymentIntent) -> Option<String> {
        let customer = intent.customer.as_ref().map(|customer| customer.id().as_str());
        money_difference(self.amount, intent.amount, &intent.currency)
            .or_else(|| text_difference("customer", self.customer.as_ref()?, customer))
    }

    fn found(intent: &PaymentIntent) -> PaymentIntentRef {
        PaymentIntentRef {
            id: intent.id.to_string(),
            created: intent.created,
            status: intent.status.as_str().to_owned(),
        }
    }

    /// A declined charge leaves its intent behind, waiting for another payment method. It took no money, and the answer
    /// was a refusal, so the next submission makes a new one.
    fn is_refusal(&self, intent: &PaymentIntent) -> bool {
        self.confirmation == Confirmation::OffSession
            && intent.amount_received == 0
            && matches!(
                intent.status,
                PaymentIntentStatus::RequiresPaymentMethod | PaymentIntentStatus::Canceled
            )
    }
}

/// Presents the payment intent under the call's key.
///
/// # Errors
/// As the failure table says; an answer about other money is unknown.
pub async fn create_payment_intent(
    client: &Stripe,
    call: &Call,
    instruction: &PaymentIntentInstruction,
) -> Result<PaymentIntentRef, Failure> {
    instruction.check()?;
    let request = instruction.request(call.operation_id);
    create(client, call, instruction.account.as_deref(), instruction, &request).await
}

/// Looks for the payment intent among those created in the window, of the customer if there is one.
///
/// # Errors
/// A read that failed; it says nothing about the payment intent.
pub async fn find_payment_intent(
    client: &Stripe,
    call: &Call,
    instruction: &PaymentIntentInstruction,
    window: CreatedWindow,
) -> Result<Resolution<PaymentIntentRef>, Failure> {
    instruction.check()?;
    find(client, call, instruction.account.as_deref(), instruction, Scope::Shared, |after| {
        let mut list = ListPaymentIntent::new().created(window.range()).limit(PAGE);
        if let Some(customer) = &instruction.customer {
            list = list.customer(customer);
        }
        match after {
            Some(id) => list.starting_after(id),
            None => list,
        }
    })
    .await
}

/// Settled means `succeeded`: the customer has paid. Whether the money is available is the charge's own matter.
///
/// # Errors
/// A read that failed.
pub async fn payment_intent_settlement(
    client: &Stripe,
    call: &Call,
    account: Option<&str>,
    id: &str,
) -> Result<Settlement, Failure> {
    check_id("id", &["pi_"], id)?;
    let intent = client.ask(call, account, &RetrievePaymentIntent::new(id)).await?.value;
    let status = intent.status.as_str().to_owned();
    Ok(match intent.status {
        PaymentIntentStatus::Succeeded => Settlement::Settled,
        PaymentIntentStatus::Processing => Settlement::Pending,
        PaymentIntentStatus::Canceled => Settlement::Canceled,
        PaymentIntentStatus::RequiresAction
        | PaymentIntentStatus::RequiresCapture
        | PaymentIntentStatus::RequiresConfirmation
        | PaymentIntentStatus::RequiresPaymentMethod => Settlement::NeedsAction { status },
        _ => Settlement::Unlisted { status },
    })
}
