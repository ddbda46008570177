//! `backline dev`: everything on this machine, until Ctrl-C.

mod stack;

use crate::output::{Output, table};
use crate::{Verdict, db, migrate};
use anyhow::Context;
use backline_dev_cluster::paths;
use backline_dev_cluster::pg::{Cluster, Options, state_dir};
use backline_dev_cluster::process::Process;
use backline_example_conversations as conversations;
use backline_outbox::run_tx;
use clap::Args;
use serde_json::json;
use sqlx::PgPool;
pub(crate) use stack::{START_LIMIT, Stack};
use std::time::Duration;
use tokio::task::block_in_place;

/// Database of the development cluster.
const DATABASE: &str = "backline";
/// How often children are looked at; nobody waits for it.
const LOOK_EVERY: Duration = Duration::from_millis(500);

#[derive(Debug, Args)]
pub(crate) struct DevArgs {
    /// Port of PostgreSQL instead of a free one.
    #[arg(long)]
    postgres_port: Option<u16>,
}

/// Everything that runs; dropping it stops all of it, PostgreSQL last.
struct Running {
    programs: Vec<(&'static str, Process)>,
    stack: Stack,
    _cluster: Cluster,
}

pub(crate) async fn run(args: DevArgs, output: &Output) -> anyhow::Result<Verdict> {
    let mut running = start(args).await?;
    let stack = &running.stack;
    let addresses = [
        ("DATABASE_URL", stack.database_url.clone()),
        ("PUBSUB_EMULATOR_HOST", stack.emulator.to_string()),
        ("STRIPE_BASE_URL", format!("http://{}/", stack.sandbox)),
        ("TWILIO_BASE_URL", format!("http://{}/", stack.sandbox)),
        ("sandbox ledger", format!("http://{}/ledger", stack.sandbox)),
        ("sandbox conversations", format!("http://{}/twilio", stack.sandbox)),
        ("logs", stack.dir.display().to_string()),
    ];
    output.answer(&json!(addresses.iter().cloned().collect::<std::collections::BTreeMap<_, _>>()), || {
        let rows = addresses.iter().map(|(name, value)| vec![(*name).to_owned(), value.clone()]);
        format!(
            "{}\nrunning; Ctrl-C stops everything, data stays for the next start",
            table(&["what", "where"], rows)
        )
    })?;
    let mut ticks = tokio::time::interval(LOOK_EVERY);
    loop {
        tokio::select! {
            stopped = tokio::signal::ctrl_c() => {
                stopped.context("Ctrl-C cannot be listened for")?;
                output.say("stopping");
                block_in_place(|| drop(running));
                return Ok(Verdict::Good);
            }
            _ = ticks.tick() => {
                for (name, process) in &mut running.programs {
                    if let Some(code) = process.exited()? {
                        anyhow::bail!("{name} ended with code {code}; see {}", process.log().display());
                    }
                }
            }
        }
    }
}

async fn start(args: DevArgs) -> anyhow::Result<Running> {
    let tree = paths::workspace()?;
    let mut options = Options::kept_in(state_dir(&tree, "dev-postgres")?);
    if let Some(port) = args.postgres_port {
        options = options.port(port);
    }
    let cluster = block_in_place(|| options.start()).context("PostgreSQL")?;
    if cluster.session(DATABASE).is_err() {
        cluster.create_database(DATABASE)?;
    }
    let stack = Stack::new(state_dir(&tree, "dev")?, cluster.url(DATABASE))?;
    let pool = db::connect(Some(&stack.database_url)).await?;
    migrate::MIGRATIONS.run(&pool).await.context("migrations")?;
    application(&pool).await.context("tables of the example with conversations")?;
    pool.close().await;
    let programs = block_in_place(|| programs(&stack))?;
    Ok(Running { programs, stack, _cluster: cluster })
}

/// The tables that the Twilio worker reads, those of `examples/conversations`, unless they are there.
async fn application(pool: &PgPool) -> sqlx::Result<()> {
    run_tx!(pool, "dev_application", |tx| async {
        let there = "select exists (select from pg_namespace where nspname = 'chat')";
        if !sqlx::query_scalar::<_, bool>(there).fetch_one(&mut *tx).await? {
            conversations::install(tx).await?;
        }
        Ok::<_, sqlx::Error>(())
    })
}

/// The payments worker makes the topic and its subscription, so it is ready before anything is published.
fn programs(stack: &Stack) -> anyhow::Result<Vec<(&'static str, Process)>> {
    let mut emulator = stack.emulator()?.start()?;
    emulator.wait_listening(START_LIMIT)?;
    let mut sandbox = stack.sandbox()?.start()?;
    sandbox.wait_listening(START_LIMIT)?;
    // Nobody waits five minutes for a stand-in to settle.
    let mut payments = stack.payments("payments")?.env("STRIPE_SETTLEMENT_POLL", "5s").start()?;
    payments.wait_for_line("a line `ready`", START_LIMIT, |line| line == "ready")?;
    // Lists of a stand-in do not lag for half a minute.
    let twilio = stack.twilio("twilio")?.env("TWILIO_LINGER", "15s").env("TWILIO_LOOKUP_LAG", "2s");
    let mut twilio = twilio.start()?;
    twilio.wait_for_line("a line `ready`", START_LIMIT, |line| line == "ready")?;
    let relay = stack.relay("relay")?.start()?;
    Ok(vec![
        ("relay", relay),
        ("payments", payments),
        ("twilio", twilio),
        ("sandbox", sandbox),
        ("emulator", emulator),
    ])
}
