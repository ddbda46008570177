//! `backline-pubsub-emulator`: the embedded Pub/Sub as a process.

use anyhow::Result;
use backline_pubsub_emulator::{Config, Emulator};
use clap::Parser;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Google Pub/Sub for development, tests and drills, on one port.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// Address to listen on.
    #[arg(long, env = "PUBSUB_EMULATOR_LISTEN", default_value = "127.0.0.1:8085")]
    listen: SocketAddr,
    /// Port to listen on instead of the address's; 0 picks a free one.
    #[arg(long)]
    port: Option<u16>,
    /// Directory of the journal; without it nothing survives the process.
    #[arg(long, env = "PUBSUB_EMULATOR_DATA_DIR")]
    data_dir: Option<PathBuf>,
    /// Accepted messages kept for GET /log; 0 keeps none.
    #[arg(long, default_value_t = Config::default().log_limit)]
    log_limit: usize,
    /// Shortest acknowledgement deadline clients may ask for, in seconds (the service's floor is 10).
    #[arg(long, default_value_t = 10)]
    min_ack_deadline: u64,
    /// Ceiling put on every acknowledgement deadline, in milliseconds, for tests of expiry.
    #[arg(long, env = "PUBSUB_EMULATOR_ACK_DEADLINE_CAP")]
    ack_deadline_cap: Option<u64>,
    /// Ceiling put on the delay of every retry policy, in milliseconds, for tests that compress all timers.
    #[arg(long, env = "PUBSUB_EMULATOR_RETRY_BACKOFF_CAP")]
    retry_backoff_cap: Option<u64>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let args = Args::parse();
    // Before the first line of output, which tells a parent process that it may send signals.
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    let mut listen = args.listen;
    if let Some(port) = args.port {
        listen.set_port(port);
    }
    let emulator = Emulator::start(Config {
        listen,
        data_dir: args.data_dir,
        log_limit: args.log_limit,
        min_ack_deadline: Duration::from_secs(args.min_ack_deadline),
        ack_deadline_cap: args.ack_deadline_cap.map(Duration::from_millis),
        retry_backoff_cap: args.retry_backoff_cap.map(Duration::from_millis),
    })
    .await?;
    let mut out = std::io::stdout();
    writeln!(out, "listening on {}", emulator.addr)?;
    out.flush()?;
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
    // Clients that keep their connections open must not hold the process.
    let _ = tokio::time::timeout(Duration::from_secs(2), emulator.shutdown()).await;
    Ok(())
}
