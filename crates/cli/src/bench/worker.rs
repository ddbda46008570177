//! The worker that is measured: a real process with the runtime's own `main`, and handlers that do nothing.

use super::clock::now_us;
use super::provider::Follow;
use backline_envelope::{DecodeError, Envelope};
use backline_failure::{Call, Failure, Mode, Resolution};
use backline_outbox::NewOperation;
use backline_runtime::{
    Command, Conclusion, Consumer, Error, Evidence, Intent, KindSpec, Operation, Record, Serial, Workload,
    WorkloadConfig, init_telemetry, install_metrics,
};
use clap::{Parser, ValueEnum};
use serde_json::{Value, json};
use std::time::Duration;

/// The product's default of operations in flight.
pub(super) const OPERATIONS: usize = 2000;

/// Settings of the measured worker; everything else has the product's defaults.
#[derive(Debug, clap::Args)]
pub(crate) struct WorkerArgs {
    #[arg(long, value_enum)]
    handler: Handler,
    /// Operations in flight.
    #[arg(long, default_value_t = OPERATIONS)]
    operations: usize,
    #[arg(long, default_value_t = 8)]
    connections: u32,
    /// host:port of the emulator; with it the worker also reads events.
    #[arg(long)]
    emulator: Option<String>,
    /// host:port of the provider stand-in of `follow`.
    #[arg(long, required_if_eq("handler", "follow"))]
    provider: Option<String>,
}

/// What the worker performs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Handler {
    /// Nothing.
    Noop,
    /// Nothing, and records a row.
    Recording,
    /// Says when its first line ran.
    Stamp,
    /// Never ends.
    Slow,
    /// Makes the provider stand-in show a desired state.
    Follow,
}

#[derive(Parser)]
struct Config {
    #[command(flatten)]
    workload: WorkloadConfig,
}

/// Runs until SIGTERM, as a worker's `main` does.
pub(crate) async fn run(url: &str, args: WorkerArgs) -> anyhow::Result<()> {
    let (operations, connections) = (args.operations.to_string(), args.connections.to_string());
    let words = ["worker", "--database-url", url, "--operations", &operations, "--connections", &connections];
    let mut config = Config::try_parse_from(words)?.workload;
    config.pubsub_emulator_host = args.emulator.clone();
    let _telemetry = init_telemetry("backline-bench", &config.log, None)?;
    let mut workload = Workload::new("bench", config).metrics(install_metrics()?);
    workload = match args.handler {
        Handler::Noop => workload.command(Noop),
        Handler::Recording => workload.command(Recording),
        Handler::Stamp => workload.command(Stamp),
        Handler::Slow => workload.command(Slow),
        Handler::Follow => workload.reconcile(Follow::new(args.provider.unwrap_or_default())),
    };
    if args.emulator.is_some() {
        workload = match args.handler {
            Handler::Stamp => workload.consumer(Asks::<true>),
            _ => workload.consumer(Asks::<false>),
        };
    }
    workload.run().await?;
    Ok(())
}

fn spec() -> KindSpec {
    KindSpec { keep_input: false, serial: Serial::Exclusive, ..KindSpec::new(Mode::Command, "bench:none") }
        .with_native_idempotency(Duration::from_secs(3600))
}

/// The handlers of commands differ in a line each.
macro_rules! handler {
    ($name:ident, $kind:literal, $records:literal, $perform:expr) => {
        struct $name;
        impl Command for $name {
            const KIND: &'static str = $kind;
            const RECORDS: bool = $records;
            const GUARDS: bool = false;
            type Input = Value;
            type Output = Value;
            fn spec(&self) -> KindSpec {
                spec()
            }
            async fn perform(&self, _: &Call, _: &Value) -> Result<Value, Failure> {
                Ok($perform)
            }
            async fn resolve(
                &self,
                _: &Call,
                _: &Operation,
                _: &Value,
                _: &[Evidence],
            ) -> Result<Resolution<Value>, Failure> {
                Ok(Resolution::StillUnknown)
            }
            async fn record(
                &self,
                record: &mut Record<'_>,
                _: &Value,
                _: Conclusion<'_, Value>,
            ) -> Result<(), Error> {
                let id = record.operation().id;
                let effect = sqlx::query("insert into bench.effect (operation_id) values ($1)").bind(id);
                effect.execute(record.connection()).await?;
                Ok(())
            }
        }
    };
}
handler!(Noop, "bench.noop", false, json!({"ok": true, "bytes": 1234}));
handler!(Recording, "bench.recording", true, json!({"ok": true, "bytes": 1234}));
handler!(Stamp, "bench.stamp", false, json!({"at_us": now_us()}));
handler!(Slow, "bench.slow", false, std::future::pending().await);

/// Turns each event into one operation, half of them with a serial key.
struct Asks<const STAMP: bool>;

impl<const STAMP: bool> Consumer for Asks<STAMP> {
    const NAME: &'static str = "bench";
    const EVENTS: &'static [&'static str] = &["PaymentAuthorized"];

    fn intents(&self, event: &Envelope) -> Result<Vec<Intent>, DecodeError> {
        let Some(organization) = event.organization else { return Ok(Vec::new()) };
        let kind = if STAMP { Stamp::KIND } else { Noop::KIND };
        let mut operation =
            NewOperation::new(kind, organization, event.aggregate_id.clone(), event.payload.clone());
        if event.aggregate_id.ends_with(['0', '2', '4', '6', '8']) {
            operation.serial_key = Some(event.aggregate_id.clone());
        }
        Ok(vec![Intent::Run(operation)])
    }
}
