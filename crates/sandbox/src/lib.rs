//! Provider stand-ins for development, tests and drills: stateful, journaled, and able to lie.
//!
//! [`Sandbox::start`] embeds one in a test; the binary of the same name runs one as its own process.
//! Stripe's v1 API is under `/v1`; `/faults`, `/control`, `/journal` and `/ledger` belong to the sandbox.
//!
//! The journal has one line per call, written before the reply. It is both what checkers count
//! effects in and what a killed sandbox is rebuilt from: an effect that a caller may have heard of is
//! in it, and an effect that is not in it never happened.

mod app;
mod clock;
mod config;
mod control;
mod duration;
mod embedded;
mod faults;
mod journal;
mod ledger;
mod reply;
mod routes;
mod serve;
mod stripe;

pub use app::StartError;
pub use config::{AccountState, Config, Settle};
pub use control::Action;
pub use duration::{BadDuration, parse as parse_duration};
pub use faults::{BadText, Fault, FaultFile, LimiterRule, Match, Per, RetryAfter, Rule, When};
pub use journal::JournalError;
pub use serve::Sandbox;

/// Reads a fault file: `{"rules": […], "limiter": {…}}`, a list of rules, or one rule.
///
/// # Errors
/// Not JSON, or a rule with an unknown or missing field; the text names it.
pub fn parse_faults(text: &str) -> Result<FaultFile, String> {
    let value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    routes::parse_faults(value)
}
