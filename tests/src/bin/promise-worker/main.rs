//! A worker whose handlers do what a test's input says, so that the runtime's promises do not rest on one provider.
//!
//! Its provider is the test itself (`backline_promises::Effects`), which outlives every kill.

mod consumer;
mod desired;
mod effect;
mod provider;

use backline_failure::Policy;
use backline_runtime::{KindSpec, ProviderBudget, Workload, WorkloadConfig};
use clap::Parser;
use effect::{Bare, Effect, Fifo, Guarded, Keyed, Parent, Plain, Serial, Spare};
use provider::Provider;
use std::process::ExitCode;
use std::time::Duration;

/// Account of every kind.
const ACCOUNT: &str = "promise:provider";

#[derive(Parser)]
struct Settings {
    #[command(flatten)]
    workload: WorkloadConfig,
    /// The provider's address.
    #[arg(long, env = "PROMISE_PROVIDER")]
    provider: String,
    /// Credential sent with every call: rotated by tests, never part of a key.
    #[arg(long, env = "PROMISE_CREDENTIAL", default_value = "first", hide_env_values = true)]
    credential: String,
    /// Bound of one call.
    #[arg(long, env = "PROMISE_TIMEOUT", default_value = "1s", value_parser = humantime::parse_duration)]
    timeout: Duration,
    /// Provider's memory of keys.
    #[arg(long, env = "PROMISE_WINDOW", default_value = "23h", value_parser = humantime::parse_duration)]
    window: Duration,
    /// How late an abandoned request may apply.
    #[arg(long, env = "PROMISE_LINGER", default_value = "500ms", value_parser = humantime::parse_duration)]
    linger: Duration,
    /// Counted attempts.
    #[arg(long, env = "PROMISE_ATTEMPTS", default_value_t = 5)]
    attempts: u32,
    /// Calls per second, fleet-wide.
    #[arg(long, env = "PROMISE_RATE", default_value_t = 100_000.0)]
    rate: f64,
    /// Calls in flight, fleet-wide.
    #[arg(long, env = "PROMISE_CONCURRENCY", default_value_t = 1000)]
    concurrency: i32,
    /// Highest input version that this build reads.
    #[arg(long, env = "PROMISE_VERSION", default_value_t = 1)]
    version: i32,
    /// Also performs `effect.spare`, which an older build does not know.
    #[arg(long, env = "PROMISE_SPARE", default_value_t = false)]
    spare: bool,
}

impl Settings {
    /// What every kind has in common.
    fn shape(&self, kind: KindSpec) -> KindSpec {
        KindSpec {
            linger: self.linger,
            lookup_lag: Duration::from_millis(300),
            request_timeout: self.timeout,
            policy: Policy {
                max_attempts: self.attempts,
                backoff_base: Duration::from_millis(50),
                backoff_cap: Duration::from_millis(400),
                ..Policy::default()
            },
            max_lookups: 5,
            max_input_version: self.version,
            ..kind
        }
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let settings = Settings::parse();
    let mut workload = Workload::process("promises", settings.workload.clone())?;
    let provider = Provider::new(&settings.provider, &settings.credential)?;
    let budget = ProviderBudget::per_second(settings.rate, settings.concurrency);
    workload = workload
        .budget(ACCOUNT, budget)
        .command(Effect::<Keyed>::new(&provider, &settings))
        .command(Effect::<Bare>::new(&provider, &settings))
        .command(Effect::<Plain>::new(&provider, &settings))
        .command(Effect::<Serial>::new(&provider, &settings))
        .command(Effect::<Fifo>::new(&provider, &settings))
        .command(Effect::<Parent>::new(&provider, &settings))
        .command(Effect::<Guarded>::new(&provider, &settings))
        .reconcile(desired::Desired::new(&provider, &settings))
        .consumer(consumer::Things);
    if settings.spare {
        workload = workload.command(Effect::<Spare>::new(&provider, &settings));
    }
    Ok(workload.run().await?.code())
}
