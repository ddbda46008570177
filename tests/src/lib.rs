//! What the tests of promises stand on: real PostgreSQL, real processes, real wire.
//!
//! A test starts a [`Stack`] (one fresh database, the Pub/Sub emulator, the provider sandbox, a relay, workers), acts
//! as a producer, breaks something, and asks the database, the provider's journal or the processes what is true:
//!
//! ```no_run
//! # async fn example() -> anyhow::Result<()> {
//! use backline_promises::{Stack, eventually};
//! let mut stack = Stack::builder().worker("backline-payments").start().await?;
//! stack.member("backline-payments")?.kill9()?;
//! stack.member("backline-payments")?.start()?;
//! eventually("the transfer to settle", async || Ok(stack.journal()?.iter().any(|line| line["applied"] == true))).await?;
//! # Ok(())
//! # }
//! ```
//!
//! Nothing here waits for a fixed time, and nothing is tried twice: [`eventually()`] polls a condition up to a bound.

mod chat;
pub mod check;
mod crash;
mod database;
mod effects;
mod eventually;
mod fixture;
pub mod http;
mod member;
mod operator;
mod pooler;
mod producer;
mod programs;
mod proxy;
mod receiver;
mod server;
mod spans;
mod stack;
pub mod sweep;

pub use chat::{Chat, Room};
pub use crash::{Action, CrashPlan, Site, recorded};
pub use database::Database;
pub use effects::{EffectCall, Effects, Look, Reply, Then};
pub use eventually::{LIMIT, TimedOut, eventually};
pub use fixture::{Fate, Fixture};
pub use member::{Member, Ready};
pub use operator::{Answer, TWO_PEOPLE, backline, must_backline};
pub use pooler::Pooler;
pub use producer::enqueue_in;
pub use programs::{API_KEY, EMULATOR, PAYMENTS, RELAY, SANDBOX, SCRIPTED, TWILIO, WEBHOOK};
pub use proxy::PgProxy;
pub use receiver::{Delivered, Receipt, Receiver};
pub use server::Server;
pub use spans::{Collector, Exported};
pub use stack::{Stack, StackBuilder};
