//! Payment intents, with Stripe's test payment methods
//! (<https://docs.stripe.com/testing#declined-payments>).

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Context, Executed, Refused};
use crate::stripe::error::ApiError;
use crate::stripe::form::Params;
use crate::stripe::table::{Base, Record, make_id};
use crate::stripe::world::{Change, World};

/// An intent's one charge has the intent's number.
pub(crate) const CHARGE_PREFIX: &str = "ch";

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PaymentIntent {
    #[serde(flatten)]
    pub(crate) base: Base,
    pub(crate) amount: i64,
    pub(crate) currency: String,
    pub(crate) status: String,
    pub(crate) customer: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) payment_method: Option<String>,
    pub(crate) manual_capture: bool,
    pub(crate) application_fee_amount: Option<i64>,
    pub(crate) on_behalf_of: Option<String>,
    pub(crate) transfer_destination: Option<String>,
    pub(crate) transfer_group: Option<String>,
    /// A charge was attempted.
    pub(crate) charged: bool,
    /// Captured, minor units.
    pub(crate) received: i64,
    /// Sum of refunds, minor units.
    pub(crate) refunded: i64,
}

impl Record for PaymentIntent {
    const PREFIX: &'static str = "pi";
    const OBJECT: &'static str = "payment_intent";

    fn base(&self) -> &Base {
        &self.base
    }

    fn keys(&self) -> Vec<(&'static str, String)> {
        self.customer.clone().map(|customer| ("customer", customer)).into_iter().collect()
    }
}

impl PaymentIntent {
    pub(crate) fn create(params: &Params, context: &Context) -> Executed {
        let payment_method = params.text("payment_method");
        let status =
            if payment_method.is_some() { "requires_confirmation" } else { "requires_payment_method" };
        let intent = Self {
            base: context.base(params),
            amount: params.int("amount").unwrap_or_default(),
            currency: params.text("currency").unwrap_or_default(),
            status: status.to_owned(),
            customer: params.text("customer"),
            description: params.text("description"),
            payment_method,
            manual_capture: params.get("capture_method") == Some("manual"),
            application_fee_amount: params.int("application_fee_amount"),
            on_behalf_of: params.text("on_behalf_of"),
            transfer_destination: params.text("transfer_data[destination]"),
            transfer_group: params.text("transfer_group"),
            charged: false,
            received: 0,
            refunded: 0,
        };
        if params.flag("confirm") { intent.confirmed(params) } else { Ok(Change::PaymentIntent(intent)) }
    }

    pub(crate) fn confirm(world: &World, id: &str, params: &Params, context: &Context) -> Executed {
        let mut intent = Self::owned(world, id, context)?;
        if !matches!(intent.status.as_str(), "requires_payment_method" | "requires_confirmation") {
            return Err(intent.unexpected("confirm").into());
        }
        intent.payment_method = params.text("payment_method").or(intent.payment_method);
        intent.confirmed(params)
    }

    pub(crate) fn cancel(world: &World, id: &str, context: &Context) -> Executed {
        let mut intent = Self::owned(world, id, context)?;
        if matches!(intent.status.as_str(), "succeeded" | "canceled") {
            return Err(intent.unexpected("cancel").into());
        }
        "canceled".clone_into(&mut intent.status);
        Ok(Change::PaymentIntent(intent))
    }

    pub(crate) fn capture(world: &World, id: &str, params: &Params, context: &Context) -> Executed {
        let mut intent = Self::owned(world, id, context)?;
        if intent.status != "requires_capture" {
            return Err(intent.unexpected("capture").into());
        }
        let amount = params.int("amount_to_capture").unwrap_or(intent.amount);
        if amount > intent.amount {
            let message = format!("The capture amount ({amount}) is greater than the authorized amount.");
            return Err(ApiError::invalid(Some("amount_too_large"), "amount_to_capture", message).into());
        }
        intent.received = amount;
        "succeeded".clone_into(&mut intent.status);
        Ok(Change::PaymentIntent(intent))
    }

    fn owned(world: &World, id: &str, context: &Context) -> Result<Self, ApiError> {
        let found = world.intents.find(id, context.account.as_deref()).cloned();
        found.ok_or_else(|| ApiError::missing(404, "payment_intent", id, "intent"))
    }

    fn unexpected(&self, verb: &str) -> ApiError {
        let message =
            format!("You cannot {verb} this PaymentIntent because it has a status of {}.", self.status);
        let mut error = ApiError::invalid(Some("payment_intent_unexpected_state"), "", message);
        error.payment_intent = Some(self.render());
        error
    }

    /// Charges the payment method. A decline leaves the intent behind and answers 402.
    fn confirmed(mut self, params: &Params) -> Executed {
        let method = self.payment_method.clone().unwrap_or_default();
        let off_session = params.flag("error_on_requires_action") || params.flag("off_session");
        let decline = match method.as_str() {
            "" => {
                let message = "You cannot confirm this PaymentIntent because it's missing a payment method.";
                let code = Some("payment_intent_unexpected_state");
                return Err(ApiError::invalid(code, "payment_method", message).into());
            }
            "pm_card_chargeDeclined" | "pm_card_visa_chargeDeclined" => {
                Some(("card_declined", "generic_decline"))
            }
            "pm_card_chargeDeclinedInsufficientFunds" | "pm_card_visa_chargeDeclinedInsufficientFunds" => {
                Some(("card_declined", "insufficient_funds"))
            }
            "pm_card_authenticationRequired" if off_session => {
                Some(("authentication_required", "authentication_required"))
            }
            "pm_card_authenticationRequired" => {
                "requires_action".clone_into(&mut self.status);
                return Ok(Change::PaymentIntent(self));
            }
            _ => None,
        };
        self.charged = true;
        if let Some((code, decline_code)) = decline {
            "requires_payment_method".clone_into(&mut self.status);
            self.payment_method = None;
            let mut error = ApiError::new(402, "card_error", Some(code), "Your card was declined.");
            error.decline_code = Some(decline_code.to_owned());
            error.payment_intent = Some(self.render());
            return Err(Box::new(Refused { error, change: Some(Change::PaymentIntent(self)) }));
        }
        if self.manual_capture {
            "requires_capture".clone_into(&mut self.status);
        } else {
            "succeeded".clone_into(&mut self.status);
            self.received = self.amount;
        }
        Ok(Change::PaymentIntent(self))
    }

    pub(crate) fn render(&self) -> Value {
        let id = self.id();
        let capturable = if self.status == "requires_capture" { self.amount } else { 0 };
        let next_action = (self.status == "requires_action").then(
            || json!({"type": "use_stripe_sdk", "use_stripe_sdk": {"type": "three_d_secure_redirect"}}),
        );
        json!({
            "id": id,
            "object": Self::OBJECT,
            "amount": self.amount,
            "amount_capturable": capturable,
            "amount_details": {"tip": {}},
            "amount_received": self.received,
            "application": null,
            "application_fee_amount": self.application_fee_amount,
            "automatic_payment_methods": null,
            "canceled_at": null,
            "cancellation_reason": null,
            "capture_method": if self.manual_capture { "manual" } else { "automatic" },
            "client_secret": format!("{id}_secret_sandbox"),
            "confirmation_method": "automatic",
            "created": self.base.created(),
            "currency": self.currency,
            "customer": self.customer,
            "description": self.description,
            "last_payment_error": null,
            "latest_charge": self.charged.then(|| make_id(CHARGE_PREFIX, self.base.n)),
            "livemode": false,
            "metadata": self.base.metadata,
            "next_action": next_action,
            "on_behalf_of": self.on_behalf_of,
            "payment_method": self.payment_method,
            "payment_method_options": {},
            "payment_method_types": ["card"],
            "processing": null,
            "receipt_email": null,
            "review": null,
            "setup_future_usage": null,
            "shipping": null,
            "source": null,
            "statement_descriptor": null,
            "statement_descriptor_suffix": null,
            "status": self.status,
            "transfer_data": self.transfer_destination.as_ref().map(|to| json!({"destination": to})),
            "transfer_group": self.transfer_group,
        })
    }
}
