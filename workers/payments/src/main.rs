//! The payments worker: authorized payments become Stripe effects, and are followed until they settle.

mod consumer;
mod events;
mod payment_intent;
mod payout;
mod refund;
mod reversal;
mod settlement;
mod submission;
mod transfer;

use anyhow::Context;
use backline_runtime::{ProviderBudget, Workload, WorkloadConfig};
use backline_stripe::{ApiKey, Config, Stripe};
use clap::Parser;
use std::process::ExitCode;
use submission::{ACCOUNT, Timing};
use url::Url;

#[derive(Parser)]
struct Settings {
    #[command(flatten)]
    workload: WorkloadConfig,
    #[command(flatten)]
    timing: Timing,
    /// Secret or restricted key of the platform's account.
    #[arg(long, env = "STRIPE_API_KEY", hide_env_values = true)]
    stripe_api_key: String,
    /// Where Stripe is.
    #[arg(long, env = "STRIPE_BASE_URL", default_value = Config::LIVE_URL)]
    stripe_base_url: Url,
    /// Requests per second, fleet-wide: a quarter of Stripe's live limit of 100 (<https://docs.stripe.com/rate-limits>).
    #[arg(long, env = "STRIPE_RATE", default_value_t = 25.0)]
    stripe_rate: f64,
    /// Requests in flight, fleet-wide.
    #[arg(long, env = "STRIPE_CONCURRENCY", default_value_t = 20)]
    stripe_concurrency: i32,
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let settings = Settings::parse();
    let timing = settings.timing;
    timing.check(&settings.workload.capacity)?;
    let api_key = ApiKey::new(&settings.stripe_api_key).context("setting STRIPE_API_KEY")?;
    let workload = Workload::process("payments", settings.workload)?;
    let stripe = Stripe::new(Config {
        api_key,
        base_url: settings.stripe_base_url,
        connect_timeout: timing.request_timeout / 2,
    })?;
    let budget = ProviderBudget::per_second(settings.stripe_rate, settings.stripe_concurrency);
    let exit = workload
        .budget(ACCOUNT, budget)
        .command(transfer::Transfer { stripe: stripe.clone(), timing: timing.clone() })
        .command(payout::Payout { stripe: stripe.clone(), timing: timing.clone() })
        .command(payment_intent::PaymentIntent { stripe: stripe.clone(), timing: timing.clone() })
        .command(refund::Refund { stripe: stripe.clone(), timing: timing.clone() })
        .command(reversal::Reversal { stripe: stripe.clone(), timing: timing.clone() })
        .reconcile(settlement::Settlement { stripe, timing })
        .consumer(consumer::Payments)
        .run()
        .await?;
    Ok(exit.code())
}
