//! Runs one sandbox until it is told to stop.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use backline_sandbox::{Config, FaultFile, Sandbox, Settle, parse_duration, parse_faults};
use clap::Parser;
use tracing_subscriber::EnvFilter;

/// A provider stand-in: stateful, journaled, and able to lie.
#[derive(Debug, Parser)]
#[command(version)]
struct Options {
    /// Address to listen on; port 0 picks a free one.
    #[arg(long, env = "SANDBOX_LISTEN", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Append-only file of every call; state is rebuilt from it.
    #[arg(long, env = "SANDBOX_JOURNAL")]
    journal: Option<PathBuf>,
    /// Time an object stays in each step before it moves on.
    #[arg(long, env = "SANDBOX_SETTLE_AFTER", default_value = "200ms", value_parser = parse_duration)]
    settle_after: Duration,
    /// Move an object on after so many retrievals instead of after a time.
    #[arg(long, env = "SANDBOX_SETTLE_POLLS", conflicts_with = "settle_after")]
    settle_polls: Option<u32>,
    /// How long new objects stay invisible to retrieve and list.
    #[arg(long, env = "SANDBOX_LOOKUP_LAG", default_value = "0ms", value_parser = parse_duration)]
    lookup_lag: Duration,
    /// How far search is behind list and retrieve.
    #[arg(long, env = "SANDBOX_SEARCH_LAG", default_value = "1s", value_parser = parse_duration)]
    search_lag: Duration,
    /// Age at which an idempotency key is forgotten.
    #[arg(long, env = "SANDBOX_KEY_WINDOW", default_value = "24h", value_parser = parse_duration)]
    key_window: Duration,
    /// Opening balance in minor units per currency; unlimited if absent.
    #[arg(long, env = "SANDBOX_FUNDS")]
    funds: Option<i64>,
    /// Accepted secret key, repeatable: Stripe's, or Twilio's as `SK…:secret`. Without one of a provider, any key of its
    /// shape is accepted.
    #[arg(long = "api-key", env = "SANDBOX_API_KEYS", value_delimiter = ',', hide_env_values = true)]
    api_keys: Vec<String>,
    /// JSON file of fault rules.
    #[arg(long, env = "SANDBOX_FAULTS")]
    faults: Option<PathBuf>,
    /// Seed of every probability.
    #[arg(long, env = "SANDBOX_SEED", default_value_t = 0)]
    seed: u64,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info")))
        .with_writer(std::io::stderr)
        .init();
    let sandbox = Sandbox::start(config(Options::parse())?).await.context("sandbox does not start")?;
    let mut out = std::io::stdout();
    writeln!(out, "listening on {}", sandbox.address())?;
    out.flush()?;
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted?,
        _ = terminate.recv() => {}
    }
    sandbox.stop().await;
    Ok(())
}

fn config(options: Options) -> anyhow::Result<Config> {
    let faults = match &options.faults {
        None => FaultFile::default(),
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .with_context(|| format!("faults file {} cannot be read", path.display()))?;
            parse_faults(&text)
                .map_err(|reason| anyhow::anyhow!("faults file {}: {reason}", path.display()))?
        }
    };
    Ok(Config {
        listen: options.listen,
        journal: options.journal,
        settle: options.settle_polls.map_or(Settle::After(options.settle_after), Settle::Polls),
        lookup_lag: options.lookup_lag,
        search_lag: options.search_lag,
        key_window: options.key_window,
        funds: options.funds,
        api_keys: options.api_keys,
        faults,
        seed: options.seed,
        ..Config::default()
    })
}
