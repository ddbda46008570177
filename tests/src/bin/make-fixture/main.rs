//! Writes the database fixture of this version, `tests/fixtures/<version>.*`, from a real run:
//!
//! ```sh
//! cargo build --workspace --bins && target/debug/make-fixture v0.1.0
//! ```
//!
//! Relay, workers, broker and providers are started, driven into every state that can be open, and killed; what
//! PostgreSQL and the providers then hold is the fixture. No row is written by hand. To be run once, when a version is
//! tagged: a fixture never changes afterwards.

mod dump;
mod states;

use anyhow::Context;
use backline_promises::{Fixture, PAYMENTS, RELAY, SANDBOX, SCRIPTED, Stack};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let version = std::env::args().nth(1).context("usage: make-fixture VERSION, for example v0.1.0")?;
    let plan = Stack::builder().worker(SCRIPTED).worker(PAYMENTS);
    let mut plan = plan
        // Long enough for a payment to be unsettled, and one to be in doubt, when everything dies.
        .env(SANDBOX, "SANDBOX_SETTLE_AFTER", "15s")
        .env(PAYMENTS, "STRIPE_BACKOFF", "30s")
        // Held requests are still waited for then.
        .env(PAYMENTS, "STRIPE_REQUEST_TIMEOUT", "20s")
        .env(SCRIPTED, "PROMISE_TIMEOUT", "20s");
    for worker in [SCRIPTED, PAYMENTS] {
        plan = plan.env(worker, "BACKLINE_LEASE", "60s");
    }
    let mut stack = plan
        // An event that is not sealed is offered once more and then parked.
        .env(RELAY, "BACKLINE_RELAY_MAX_OFFERS", "1")
        .start()
        .await?;
    states::reach(&mut stack).await?;
    states::confirm(&stack).await?;
    let fixture = Fixture {
        sql: dump::dump(&stack.database_url())?,
        journal: stack.journal()?.iter().map(|line| format!("{line}\n")).collect(),
        calls: stack.effects().memory().iter().map(|line| format!("{line}\n")).collect(),
    };
    fixture.write(&version)?;
    #[expect(clippy::print_stdout, reason = "the one answer of a program for the terminal")]
    {
        println!("wrote tests/fixtures/{version}.sql with its providers' memory");
    }
    Ok(())
}
