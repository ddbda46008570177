//! The Twilio worker: conversations and their participants follow what an application has committed.

mod boundary;
mod create;
mod deletion;
mod difference;
mod ending;
mod participants;
mod removal;

use backline_runtime::{ProviderBudget, Workload, WorkloadConfig};
use backline_twilio::{Config, Credentials, Twilio};
use boundary::{ACCOUNT, Timing};
use clap::Parser;
use std::process::ExitCode;
use url::Url;

#[derive(Parser)]
struct Settings {
    #[command(flatten)]
    workload: WorkloadConfig,
    #[command(flatten)]
    timing: Timing,
    /// Account, `AC…`.
    #[arg(long, env = "TWILIO_ACCOUNT_SID")]
    twilio_account_sid: String,
    /// API key, `SK…`.
    #[arg(long, env = "TWILIO_API_KEY")]
    twilio_api_key: String,
    /// The key's secret.
    #[arg(long, env = "TWILIO_API_SECRET", hide_env_values = true)]
    twilio_api_secret: String,
    /// Where Twilio's Conversations are.
    #[arg(long, env = "TWILIO_BASE_URL", default_value = Config::LIVE_URL)]
    twilio_base_url: Url,
    /// Requests per second, fleet-wide. Twilio publishes no limit of Conversations; this is for both of us to live with.
    #[arg(long, env = "TWILIO_RATE", default_value_t = 25.0)]
    twilio_rate: f64,
    /// Requests in flight, fleet-wide: what Twilio limits and answers with 20429.
    #[arg(long, env = "TWILIO_CONCURRENCY", default_value_t = 20)]
    twilio_concurrency: i32,
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let settings = Settings::parse();
    let timing = settings.timing;
    timing.check(&settings.workload.capacity)?;
    let workload = Workload::process("twilio", settings.workload)?;
    let (account, key) = (settings.twilio_account_sid, settings.twilio_api_key);
    let twilio = Twilio::new(Config {
        credentials: Credentials::new(account, key, settings.twilio_api_secret),
        base_url: settings.twilio_base_url,
        connect_timeout: Config::CONNECT_TIMEOUT.min(timing.request_timeout / 2),
    })?;
    let budget = ProviderBudget::per_second(settings.twilio_rate, settings.twilio_concurrency);
    let exit = workload
        .budget(ACCOUNT, budget)
        .command(create::Create { twilio: twilio.clone(), timing: timing.clone() })
        .reconcile(participants::Participants { twilio: twilio.clone(), timing: timing.clone() })
        .reconcile(removal::RemoveParticipant { twilio: twilio.clone(), timing: timing.clone() })
        .reconcile(ending::End::<false> { twilio: twilio.clone(), timing: timing.clone() })
        .reconcile(ending::End::<true> { twilio: twilio.clone(), timing: timing.clone() })
        .reconcile(deletion::Delete { twilio, timing })
        .run()
        .await?;
    Ok(exit.code())
}
