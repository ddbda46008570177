//! Runs a POST that passed validation and took its key.

use super::endpoint::Endpoint;
use super::error::ApiError;
use super::form::Params;
use super::objects::{Context, Executed, PaymentIntent, Payout, Refund, Reversal, Transfer};
use super::world::World;

/// What the endpoint would change. Nothing is changed yet.
pub(crate) fn execute(endpoint: Endpoint<'_>, world: &World, params: &Params, context: &Context) -> Executed {
    match endpoint {
        Endpoint::CreateTransfer => Transfer::create(world, params, context),
        Endpoint::CreateReversal { transfer } => Reversal::create(world, transfer, params, context),
        Endpoint::CreatePayout => Payout::create(world, params, context),
        Endpoint::CreateIntent => PaymentIntent::create(params, context),
        Endpoint::ConfirmIntent(id) => PaymentIntent::confirm(world, id, params, context),
        Endpoint::CancelIntent(id) => PaymentIntent::cancel(world, id, context),
        Endpoint::CaptureIntent(id) => PaymentIntent::capture(world, id, params, context),
        Endpoint::CreateRefund => Refund::create(world, params, context),
        _ => Err(ApiError::invalid(None, "", "This endpoint is read only.").into()),
    }
}
