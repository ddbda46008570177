//! `relay`: outbox entries claimed, published to the embedded broker, confirmed and recorded.

use super::bed::{Bed, real};
use super::child::log;
use super::line::{Line, Runs, Target};
use super::plan::Plan;
use anyhow::ensure;
use backline_broker::{Broker, BrokerConfig};
use backline_dev_cluster::process::{Launch, Process};
use backline_pubsub_emulator::{Config, Emulator};
use sqlx::postgres::PgConnection;
use sqlx::{Connection, Row};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// Start and orderly end of a relay.
const LIMIT: Duration = Duration::from_secs(30);

/// A relay, as the process that is deployed, and the broker it publishes to.
pub(super) struct Running {
    pub(super) host: String,
    emulator: Emulator,
    relay: Process,
}

impl Running {
    /// With the settings of the relay's binary, asleep.
    pub(super) async fn start(bed: &Bed) -> anyhow::Result<Self> {
        // Nobody asks for the log here, and it would keep every message.
        let emulator = Emulator::start(Config { log_limit: 0, ..Config::default() }).await?;
        let host = emulator.addr.to_string();
        let broker = Broker::connect(BrokerConfig::new("backline", Some(host.clone()))).await?;
        broker.ensure_topic("domain-events").await?;
        let program = std::env::current_exe()?.with_file_name("backline-relay");
        ensure!(program.exists(), "{} is not built", program.display());
        let relay = Launch::new(program, log("relay"))
            .env("DATABASE_URL", &bed.url)
            .env("PUBSUB_EMULATOR_HOST", &host)
            .env("BACKLINE_RELAY_HEALTH", "127.0.0.1:0")
            .start()?;
        bed.until("the relay asleep", async || Ok(sleepers(bed, "backline_outbox").await? > 0)).await?;
        Ok(Self { host, emulator, relay })
    }

    pub(super) async fn stop(mut self) -> anyhow::Result<()> {
        self.relay.terminate()?;
        self.relay.wait_exit(LIMIT)?;
        // Many runs, one file, as with workers.
        let _ = std::fs::remove_file(log("relay"));
        self.emulator.shutdown().await
    }
}

pub(super) async fn relay(bed: &Bed, plan: Plan) -> anyhow::Result<Line> {
    let mut best = (0.0, (500, 2));
    for shape in [(100, 1), (100, 2), (500, 1), (500, 2)] {
        let rate = bare(bed, plan.rows, shape).await?;
        if rate > best.0 {
            best = (rate, shape);
        }
    }
    let (mut ceiling, mut mine) = (Runs::default(), Runs::default());
    for _ in 0..plan.runs {
        ceiling.push(bare(bed, plan.rows, best.1).await?);
        mine.push(ours(bed, plan.rows).await?);
    }
    let line = Line::against("relay", "entry/s", &mine, &ceiling, Target::AtLeast(0.50));
    let (batch, connections) = best.1;
    let how =
        format!("bare: read and move, batch {batch}, {connections} connections; topic without subscription");
    Ok(line.note(&how).peers(78_000.0, "mark from a Rust client, 1 connection"))
}

/// Entries per second of a relay.
pub(super) async fn ours(bed: &Bed, rows: i64) -> anyhow::Result<f64> {
    bed.reset().await?;
    bed.entries(rows).await?;
    bed.settle().await?;
    let running = Running::start(bed).await?;
    let rate = timed(bed, rows).await?;
    running.stop().await?;
    Ok(rate)
}

/// Opens the lanes for a running relay and waits until they are empty.
pub(super) async fn timed(bed: &Bed, rows: i64) -> anyhow::Result<f64> {
    // The last entry of each lane, by primary key: cheap to ask for, however many dead rows there are.
    let last = sqlx::query("select lane, max(seq) as seq from backline.outbox group by lane")
        .fetch_all(&bed.pool)
        .await?;
    let lanes: Vec<i16> = last.iter().map(|row| row.get(0)).collect();
    let seqs: Vec<i64> = last.iter().map(|row| row.get(1)).collect();
    let from = bed.open_lanes().await?;
    let left = "select count(*) from unnest($1::smallint[], $2::bigint[]) as l(lane, seq) join backline.outbox o using (lane, seq)";
    bed.until("all entries published", async || {
        let count: i64 = sqlx::query_scalar(left).bind(&lanes).bind(&seqs).fetch_one(&bed.pool).await?;
        Ok(count == 0)
    })
    .await?;
    Ok(real(rows) / (last_published(bed).await? - from))
}

/// How many listeners of a bell sleep.
pub(super) async fn sleepers(bed: &Bed, bell: &str) -> anyhow::Result<i64> {
    let asleep =
        "select count(*) from backline.sleeper where channel = $1 and asleep_until > clock_timestamp()";
    Ok(sqlx::query_scalar(asleep).bind(bell).fetch_one(&bed.pool).await?)
}

async fn last_published(bed: &Bed) -> anyhow::Result<f64> {
    bed.number("select extract(epoch from max(published_at))::float8 from backline.outbox_published").await
}

/// Entries per second of a program that reads a lane's batches and records them as published, without publishing.
pub(super) async fn bare(bed: &Bed, rows: i64, shape: (i64, usize)) -> anyhow::Result<f64> {
    bed.reset().await?;
    bed.entries(rows).await?;
    bed.settle().await?;
    bare_drain(bed, rows, shape).await
}

/// As [`bare`], of the entries that are there.
pub(super) async fn bare_drain(bed: &Bed, rows: i64, (batch, workers): (i64, usize)) -> anyhow::Result<f64> {
    let mut connections = Vec::new();
    for _ in 0..workers {
        connections.push(bed.connection().await?);
    }
    let left = Arc::new(AtomicI64::new(rows));
    let from = bed.open_lanes().await?;
    let mut tasks = tokio::task::JoinSet::new();
    for (nonce, mut connection) in (1_i64..).zip(connections) {
        let left = Arc::clone(&left);
        tasks.spawn(async move {
            while left.load(Ordering::Relaxed) > 0 {
                let done = lane(&mut connection, nonce, batch).await?;
                left.fetch_sub(done, Ordering::Relaxed);
                if done == 0 {
                    tokio::task::yield_now().await;
                }
            }
            anyhow::Ok(connection.close().await?)
        });
    }
    while let Some(task) = tasks.join_next().await {
        task??;
    }
    Ok(real(rows) / (last_published(bed).await? - from))
}

/// Takes one lane and empties it.
async fn lane(connection: &mut PgConnection, nonce: i64, batch: i64) -> anyhow::Result<i64> {
    let none: Vec<String> = Vec::new();
    let take = sqlx::query(include_str!("../../../outbox/sql/take_lanes.sql"));
    let take = take.bind(1_i64).bind("bare").bind(nonce).bind(30.0_f64).bind(&none);
    let Some(taken) = take.fetch_optional(&mut *connection).await? else { return Ok(0) };
    let (lane, token): (i16, i64) = (taken.try_get("lane")?, taken.try_get("token")?);
    let mut cursor: i64 = taken.try_get("mark_seq")?;
    let mut done = 0;
    loop {
        let read = sqlx::query(include_str!("../../../outbox/sql/read_batch.sql"));
        let read = read.bind(lane).bind(cursor).bind(batch).bind(4_000_000_i64).bind(&none);
        let rows = read.fetch_all(&mut *connection).await?;
        let mut seqs: Vec<i64> = Vec::with_capacity(rows.len());
        for row in &rows {
            std::hint::black_box(row.try_get::<String, _>("payload!")?);
            seqs.push(row.try_get("seq")?);
        }
        let Some(last) = seqs.last() else { break };
        cursor = *last;
        let ids: Vec<String> = seqs.iter().map(ToString::to_string).collect();
        let mark = sqlx::query(include_str!("../../../outbox/sql/mark_published.sql"));
        let mark = mark.bind(lane).bind(token).bind(nonce).bind(&seqs).bind(&ids).bind(30.0_f64);
        mark.execute(&mut *connection).await?;
        done += i64::try_from(seqs.len())?;
    }
    let release = sqlx::query(include_str!("../../../outbox/sql/release_lane.sql"));
    let scanned: f64 = taken.try_get("scanned_at!")?;
    release.bind(lane).bind(token).bind(nonce).bind(cursor).bind(scanned).execute(connection).await?;
    Ok(done)
}
