//! Stripe as a provider: typed requests, our own transport, one failure table, one file per effect.
//!
//! An effect is presented under the key of its [`Call`](backline_failure::Call), and the key depends on nothing else, so
//! credentials may rotate between two attempts. Every object carries the operation id in its metadata, and in its
//! transfer group where there is one; that is how a lookup finds it and a webhook is matched to it.
//!
//! ```no_run
//! # async fn pay(stripe: &backline_stripe::Stripe, call: &backline_failure::Call)
//! #     -> Result<(), Box<dyn std::error::Error>> {
//! use backline_stripe::{Amount, Currency, TransferInstruction, create_transfer};
//!
//! let instruction = TransferInstruction {
//!     amount: Amount::parse("12.50", Currency::new("eur")?)?,
//!     destination: "acct_1Nv0FGQ9RKHgCVdK".to_owned(),
//!     description: None,
//! };
//! let transfer = create_transfer(stripe, call, &instruction).await?;
//! # Ok(()) }
//! ```

mod client;
mod currency;
mod effects;
mod failure_table;
mod form;
mod key;
mod lookup;
mod money;
mod reply;
mod settlement;
mod transport;

use std::time::Duration;

pub use backline_provider_http::SetupError;
pub use client::{Config, Stripe};
pub use currency::Currency;
pub use effects::*;
pub use key::{ApiKey, KeyError};
pub use lookup::CreatedWindow;
pub use money::{Amount, MoneyError};
pub use settlement::Settlement;

/// Metadata key that holds the operation id; webhooks carry it back.
pub const OPERATION_ID: &str = "operation_id";

/// How long the same submission may be presented again. Stripe may forget a key once it is 24 hours old and would then
/// pay again (<https://docs.stripe.com/api/idempotent_requests>); the hour is for clocks and for a request in flight.
pub const IDEMPOTENCY_WINDOW: Duration = Duration::from_secs(23 * 60 * 60);

/// How late a request may still take effect after we stopped waiting for it. Stripe's own clients wait 80 seconds,
/// which is to cover the slowest request that is still executed; this is that and half as much again.
pub const LINGER: Duration = Duration::from_secs(120);

/// How long after an effect a list may not show it yet. Filtered lists are read-after-write; a minute is what Stripe
/// documents for its slower search, and no figure for lists has been measured.
pub const LOOKUP_LAG: Duration = Duration::from_secs(60);
