//! Stripe's v1 API, as far as money movements need it.

mod admit;
mod call;
mod currency;
mod endpoint;
mod error;
mod execute;
mod expand;
mod form;
mod idempotency;
mod lies;
mod objects;
mod params;
mod read;
mod search;
mod settled;
mod specs;
mod state;
mod table;
mod world;

pub(crate) use call::{Call, answer};
pub(crate) use form::Params;
pub(crate) use settled::settled;
pub(crate) use state::Stripe;
