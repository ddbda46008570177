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

use backline_runtime::{ProviderBudget, Workload, WorkloadConfig, init_telemetry, install_metrics};
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
    backline_crash_point::init_from_env().map_err(anyhow::Error::msg)?;
    let _telemetry = init_telemetry(
        "backline-payments",
        &settings.workload.log,
        settings.workload.otlp_endpoint.as_deref(),
    )?;
    // The one TLS provider of the process; a second installation would be a bug elsewhere.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let stripe = Stripe::new(Config {
        api_key: ApiKey::new(settings.stripe_api_key),
        base_url: settings.stripe_base_url,
        connect_timeout: settings.timing.request_timeout / 2,
    })?;
    let timing = settings.timing;
    let budget = ProviderBudget {
        rate: settings.stripe_rate,
        burst: settings.stripe_rate,
        concurrency: settings.stripe_concurrency,
    };
    let exit = Workload::new("payments", settings.workload)
        .metrics(install_metrics()?)
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
