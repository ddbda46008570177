//! Provider stand-ins for development, tests and drills: stateful, journaled, and able to lie.
//!
//! [`Sandbox::start`] embeds one in a test; the binary of the same name runs one as its own process.
//! Stripe's v1 API is under `/v1`, and so is Twilio's Conversations API; no path belongs to both. The sandbox itself
//! answers:
//!
//! | Path | Does |
//! |---|---|
//! | `GET /healthz` | `ok` |
//! | `GET /journal` | every line so far, NDJSON |
//! | `GET /ledger[?operation_id=…\|?summary]` | effects applied and settled per operation, sums per kind and currency |
//! | `GET /twilio` | every conversation with its participants, deleted ones included |
//! | `POST /faults` | arms a [`Rule`], a list of them, or a [`FaultFile`] |
//! | `GET /faults`, `DELETE /faults`, `DELETE /faults/{id}` | rules with their counts; removal |
//! | `PUT /faults/limiter`, `DELETE /faults/limiter` | a [`LimiterRule`] |
//! | `POST /control` | an [`Action`]: clock, keys, accounts, funds, later contradictions, conversations |
//!
//! The journal has one line per call, written before the reply. It is both what checkers count
//! effects in and what a killed sandbox is rebuilt from: an effect that a caller may have heard of is
//! in it, and an effect that is not in it never happened. It survives the death of the process, not
//! of the machine: lines are not synced to the disk. Fault rules and their counts end with the process.
//!
//! ```
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use backline_sandbox::{Config, Sandbox, parse_faults};
//!
//! let sandbox = Sandbox::start(Config::default()).await?;
//! sandbox.add_faults(parse_faults(
//!     r#"{"match": {"method": "POST", "path": "/v1/transfers"}, "per": "operation",
//!         "when": {"nth": [1]}, "fault": {"kind": "drop_reply"}}"#,
//! )?);
//! // … let workers call `sandbox.url()` …
//! assert_eq!(sandbox.ledger()["operations_duplicated"], 0);
//! # Ok(())
//! # }
//! ```

mod app;
mod clock;
mod config;
mod control;
mod duration;
mod embedded;
mod faults;
mod hold;
mod journal;
mod ledger;
mod reply;
mod routes;
mod serve;
mod stripe;
mod twilio;

pub use app::StartError;
pub use config::{AccountState, Config, Settle};
pub use control::{Action, ConversationState};
pub use duration::{BadDuration, parse as parse_duration};
pub use faults::{BadText, Fault, FaultFile, LimiterRule, Match, Per, RetryAfter, Rule, When};
pub use journal::JournalError;
pub use serve::Sandbox;
pub use twilio::ACCOUNT_SID as TWILIO_ACCOUNT_SID;

/// Reads a fault file: `{"rules": […], "limiter": {…}}`, a list of rules, or one rule.
///
/// # Errors
/// Not JSON, or a rule with an unknown or missing field; the text names it.
pub fn parse_faults(text: &str) -> Result<FaultFile, String> {
    let value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    routes::parse_faults(value)
}
