//! Twilio's Conversations API v1, as far as memberships need it.
//!
//! Error codes are Twilio's own (`https://www.twilio.com/docs/api/errors/<code>`); where the HTTP status of a code is
//! not documented, 409 is used for "exists" and 400 for the rest. Unknown parameters are refused, which Twilio does not
//! do: a misspelled one is a mistake of ours that should be heard of.

mod admit;
mod call;
mod change;
mod endpoint;
mod error;
mod execute;
mod lies;
mod members;
mod page;
mod read;
mod render;
mod report;
mod state;
mod timer;
mod world;

pub(crate) use admit::basic;
pub(crate) use call::{Call, answer};
pub(crate) use endpoint::serves;
pub(crate) use state::Twilio;

/// Name of the provider in journal lines and fault rules.
pub(crate) const PROVIDER: &str = "twilio";

/// The account that every answer names.
pub const ACCOUNT_SID: &str = "ACba5e000000000000000000000000ba5e";

/// A SID of the shape that schemas ask for: two letters of the kind, then the number of creation in hexadecimal.
pub(crate) fn sid(prefix: &str, number: u64) -> String {
    format!("{prefix}ba5e{number:028x}")
}
