//! `backline-relay`: outbox to broker.

mod settings;

use anyhow::Context;
use backline_broker::Broker;
use backline_outbox::{await_database, database_options};
use backline_relay::{Relay, RelayEnd, describe_metrics, health_routes};
use backline_telemetry::init_telemetry;
use clap::Parser;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};
use settings::Settings;
use sqlx::postgres::PgPoolOptions;
use std::process::ExitCode;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Most of the relay's own time is spent on short-lived buffers of requests and replies.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Upper bounds of latency buckets, in seconds: from one statement to the longest publish request.
const SECONDS: [f64; 10] = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0];

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let settings = Settings::parse();
    backline_crash_point::init_from_env().map_err(anyhow::Error::msg)?;
    let _telemetry = init_telemetry("backline-relay", &settings.log, settings.otlp_endpoint.as_deref())?;
    let config = settings.relay();
    config.check()?;
    settings.check()?;

    let metrics = PrometheusBuilder::new()
        // Buckets, because summaries of several replicas cannot be added up.
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)?
        .install_recorder()
        .context("metrics recorder")?;
    describe_metrics();
    let mut database = database_options(&settings.database_url)?;
    if config.doorbell {
        // A relay that stops inside a transaction keeps its lanes locked; past its lease the server ends that
        // transaction. A transaction pooler refuses the option.
        let lease = config.lease.as_millis().to_string();
        database = database.options([("idle_in_transaction_session_timeout", lease)]);
    }
    let pool = PgPoolOptions::new()
        .max_connections(settings.connections)
        .acquire_timeout(settings.acquire_timeout)
        .connect_lazy_with(database.clone());
    let scraped = PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(settings.acquire_timeout)
        .connect_lazy_with(database);
    let broker = Broker::connect(settings.broker()).await?;

    let stop = CancellationToken::new();
    let relay = Relay::new(pool.clone(), broker, config.clone(), stop.clone())?;
    let listener =
        TcpListener::bind(settings.health).await.with_context(|| format!("health: {}", settings.health))?;
    let routes = health_routes(relay.progress(), config.stall_after, metrics, scraped);
    tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, routes).await {
            tracing::error!(%error, "health pages ended");
        }
    });
    let (terminate, interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::spawn(watch_signals(stop.clone(), terminate, interrupt));

    // Not ready before it has looked at the outbox, and it looks at no outbox of another schema. While it waits for one
    // it is alive: a restart would not help.
    let progress = relay.progress();
    progress.turn();
    tokio::select! {
        biased;
        () = stop.cancelled() => return Ok(ExitCode::SUCCESS),
        found = await_database(&pool, settings.acquire_timeout, |_| progress.turn()) => found?,
    }
    // A panic of the loop ends the process with an error: the orchestrator starts a new one.
    match tokio::spawn(relay.run()).await.context("relay loop")? {
        RelayEnd::Clean => {
            tracing::info!("stopped, every lane given back");
            Ok(ExitCode::SUCCESS)
        }
        RelayEnd::Abandoned { lanes } => {
            tracing::error!(lanes, "stopped with lanes under way; their leases run out");
            Ok(ExitCode::from(75))
        }
    }
}

/// The first signal asks, the second ends the process at once.
async fn watch_signals(stop: CancellationToken, mut terminate: Signal, mut interrupt: Signal) {
    tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
    tracing::info!("stopping: finishing what is at the broker");
    stop.cancel();
    tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
    tracing::error!("second signal, ending at once");
    std::process::exit(75);
}
