//! `backline demo`: a thousand payments, and conversations whose members come and go, while processes are killed and
//! both providers lie; balanced books at the end.

mod chaos;
mod conversations;
mod driver;
mod freeze;
mod journal;
mod ledger;
mod lies;
mod report;
mod settle;
mod stage;

use crate::Verdict;
use crate::output::Output;
use anyhow::Context;
use clap::{Args, ValueEnum};
use conversations::Chat;
use driver::Driver;
use freeze::Freezer;
use indicatif::{ProgressBar, ProgressStyle};
use report::{Conversations, Report};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use stage::Stage;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::block_in_place;

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Payments to make.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(100..=100_000))]
    payments: u32,
    /// Seed of amounts and lies.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How long to wait for everything to settle after the last payment.
    #[arg(long, default_value = "120s", value_parser = humantime::parse_duration)]
    patience: Duration,
    /// Run workers with a known bug, which the books must show; only debug builds have it.
    #[arg(long, value_enum)]
    seeded_bug: Option<SeededBug>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum SeededBug {
    /// A new idempotency key at every attempt.
    NewKeyPerAttempt,
}

impl SeededBug {
    /// Number that workers know it by.
    fn number(self) -> u8 {
        match self {
            Self::NewKeyPerAttempt => 6,
        }
    }
}

pub(crate) async fn run(args: DemoArgs, output: &Output) -> anyhow::Result<Verdict> {
    let dir = stage::run_dir()?;
    let verdict = in_dir(&args, &dir, output).await;
    match &verdict {
        Ok(Verdict::Good) => std::fs::remove_dir_all(&dir)?,
        _ => output.say_aside(&format!("logs and journal stay in {}", dir.display())),
    }
    verdict
}

async fn in_dir(args: &DemoArgs, dir: &Path, output: &Output) -> anyhow::Result<Verdict> {
    let started = Instant::now();
    // The one TLS provider of the process; the sandbox itself is spoken to without TLS.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().timeout(Duration::from_secs(30)).build()?;
    let faults = dir.join("faults.json");
    std::fs::write(&faults, lies::standing().to_string())?;
    output.say("starting PostgreSQL, Pub/Sub, the sandbox of both providers, two relays and two workers of each kind");
    let stage = Stage::start(args.seed, &faults, args.seeded_bug.map(SeededBug::number), dir).await?;
    let url = stage.stack.database_url.clone();
    let sandbox = format!("http://{}", stage.stack.sandbox);
    output.say(&format!(
        "follow one payment while this runs: DATABASE_URL={url} backline explain pay_{}_00000",
        args.seed
    ));
    let chat = Arc::new(Chat::new(pool(&url, 8)?, args.seed));
    chat.prepare().await.context("tables of the example with conversations")?;
    output.say(&format!("follow one conversation: DATABASE_URL={url} backline explain {}", chat.followed()));

    let pool = pool(&url, 4)?;
    let driver = Arc::new(Driver::new(self::pool(&url, 16)?, dir)?);
    driver.prepare().await.context("payments table")?;
    let count = usize::try_from(args.payments)?;
    let payments = driver::payments(args.seed, count);
    let bar = bar(u64::from(args.payments), "paying")?;
    let paying = tokio::spawn(Arc::clone(&driver).pay(payments));
    let talking = tokio::spawn(Arc::clone(&chat).play(driver.progress(), count));
    let shown = tokio::spawn(show(bar.clone(), driver.progress()));
    let freezers = (&Freezer::new(pool.clone(), "stripe."), &Freezer::new(pool.clone(), "twilio."));
    // A bar that is not on a terminal shows nothing.
    let tell = |line: &str| if bar.is_hidden() { output.say(line) } else { bar.println(line) };
    let raged = chaos::rage(stage, driver.progress(), count, freezers, &client, tell);
    let paid = async { paying.await.context("driver")? };
    let talked = async { talking.await.context("conversations")? };
    let (mut stage, (), acknowledged) = tokio::try_join!(raged, paid, talked)?;
    shown.abort();

    let seconds = started.elapsed().as_secs_f64();
    tell(&format!("{count} commits acknowledged after {seconds:.1}s; waiting until everything has settled"));
    bar.set_prefix("settled");
    let came_to_rest =
        settle::settle(&mut stage, &pool, &client, u64::from(args.payments), args.patience, &bar).await?;
    bar.finish_and_clear();
    let report = Report {
        seed: args.seed,
        payments: count,
        seconds: started.elapsed().as_secs_f64(),
        kills: stage.kills(),
        own_ends: stage.own_ends(),
        commits_found_again: driver.found_again(),
        faults: ledger::faults(&pool, &client, &sandbox).await?,
        came_to_rest,
        balance: ledger::balance(&driver.accepted()?, &pool, &client, &sandbox).await?,
        conversations: Conversations {
            changes: acknowledged.changes,
            ends: acknowledged.ends,
            faults: conversations::faults(&pool, &client, &sandbox).await?,
            balance: conversations::balance(&chat, &acknowledged, &pool, &client, &sandbox).await?,
        },
    };
    let stories = [report::one_story(&pool).await?, conversations::one_story(&pool).await?];
    block_in_place(|| drop(stage));
    output.answer(&report, || {
        let stories: Vec<String> = stories.into_iter().flatten().collect();
        format!("{}\n\n{}\n{}", stories.join("\n\n"), report.text(), report.last_lines())
    })?;
    Ok(if report.good() { Verdict::Good } else { Verdict::Bad })
}

/// Connections that are found broken after PostgreSQL was killed are replaced.
fn pool(url: &str, connections: u32) -> anyhow::Result<PgPool> {
    Ok(PgPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(Duration::from_secs(5))
        .connect_lazy(url)?)
}

fn bar(length: u64, prefix: &'static str) -> anyhow::Result<ProgressBar> {
    let style = ProgressStyle::with_template("{prefix:8} [{bar:40}] {pos}/{len} {elapsed} {msg}")?;
    Ok(ProgressBar::new(length).with_style(style).with_prefix(prefix))
}

async fn show(bar: ProgressBar, mut accepted: tokio::sync::watch::Receiver<usize>) {
    while accepted.changed().await.is_ok() {
        let count = *accepted.borrow_and_update();
        bar.set_position(u64::try_from(count).unwrap_or(u64::MAX));
    }
}
