//! `cost`: what an operation and an idle worker cost, against fixed limits.

use super::bare_cycle::Shape;
use super::bed::{Bed, real};
use super::child::{Start, Worker};
use super::line::{Line, Target};
use super::plan::Plan;
use super::relay::Running;
use super::worker::Handler;
use std::time::Duration;

/// Limits of one worker process.
const IDLE_MIB: f64 = 24.0;
const BUSY_MIB: f64 = 96.0;
const IDLE_CPU_PERCENT: f64 = 1.0;
const IN_FLIGHT: i64 = 10_000;
/// Sessions hand their counters in once a second; this is past the next time.
const COUNTED: Duration = Duration::from_millis(1500);

pub(super) async fn cost(bed: &Bed, plan: Plan, shape: Shape) -> anyhow::Result<Vec<Line>> {
    let mut lines = database(bed, plan, shape).await?;
    lines.extend(idle(bed, plan).await?);
    lines.push(busy(bed).await?);
    Ok(lines)
}

struct Counters {
    wal: f64,
    commits: f64,
    dead: f64,
}

async fn counters(bed: &Bed) -> anyhow::Result<Counters> {
    tokio::time::sleep(COUNTED).await;
    let dead =
        "select coalesce(sum(n_dead_tup), 0)::float8 from pg_stat_user_tables where schemaname = 'backline'";
    Ok(Counters {
        wal: bed.number("select (pg_current_wal_lsn() - '0/0')::float8").await?,
        commits: bed
            .number("select xact_commit::float8 from pg_stat_database where datname = current_database()")
            .await?,
        dead: bed.number(dead).await?,
    })
}

async fn database(bed: &Bed, plan: Plan, shape: Shape) -> anyhow::Result<Vec<Line>> {
    let rows = real(plan.rows);
    bed.reset().await?;
    bed.operations("bench.noop", plan.rows, 0).await?;
    bed.settle().await?;
    let before = counters(bed).await?;
    super::bare_cycle::drain(bed, "bench.noop", plan.rows, shape).await?;
    let bare = counters(bed).await?;
    let bare =
        Counters { wal: bare.wal - before.wal, commits: bare.commits - before.commits, dead: bare.dead };

    bed.reset().await?;
    bed.operations("bench.noop", plan.rows, 0).await?;
    bed.settle().await?;
    bed.hold_claims().await?;
    let worker = Worker::start(bed, &Start::new(Handler::Noop))?;
    let before = counters(bed).await?;
    let claimed = bed.claimed().await?;
    let cpu = worker.cpu()?;
    bed.start_claims().await?;
    bed.finished(claimed, plan.rows).await?;
    let cpu = (worker.cpu()? - cpu) / rows * 1e6;
    let after = counters(bed).await?;
    worker.stop()?;
    let line = |name: &str, mine: f64, bare: f64, unit| {
        Line::new(name, mine / rows, unit).limit(bare / rows, Target::None)
    };
    Ok(vec![
        line("cost_wal", after.wal - before.wal, bare.wal, "B/op")
            .note("full-page images after a checkpoint included, in the bare run too"),
        line("cost_commits", after.commits - before.commits, bare.commits, "commit/op")
            .note("the waiting worker's and the bench's own polls are counted"),
        Line::new("cost_cpu", cpu, "us/op").note("the worker's own, without PostgreSQL's"),
        line("cost_dead_rows", after.dead, bare.dead, "row/op").note("left in all tables until vacuum comes"),
    ])
}

async fn idle(bed: &Bed, plan: Plan) -> anyhow::Result<Vec<Line>> {
    bed.reset().await?;
    let running = Running::start(bed).await?;
    let start = Start { emulator: Some(&running.host), ..Start::new(Handler::Noop) };
    let worker = Worker::start(bed, &start)?;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let window = Duration::from_secs(plan.seconds * 4);
    let before = worker.cpu()?;
    tokio::time::sleep(window).await;
    let percent = (worker.cpu()? - before) / window.as_secs_f64() * 100.0;
    let (memory, _) = worker.memory()?;
    worker.stop()?;
    running.stop().await?;
    Ok(vec![
        Line::new("cost_memory_idle", memory, "MiB")
            .limit(IDLE_MIB, Target::AtMost(1.0))
            .note("resident, with a broker subscription"),
        Line::new("cost_cpu_idle", percent, "% of a core")
            .limit(IDLE_CPU_PERCENT, Target::AtMost(1.0))
            .note(&format!("over {window:?}")),
    ])
}

async fn busy(bed: &Bed) -> anyhow::Result<Line> {
    bed.reset().await?;
    bed.operations("bench.slow", IN_FLIGHT, 0).await?;
    bed.settle().await?;
    let start = Start { operations: usize::try_from(IN_FLIGHT)?, ..Start::new(Handler::Slow) };
    let claimed = bed.claimed().await?;
    let mut worker = Worker::start(bed, &start)?;
    bed.until("all claimed", async || Ok(bed.claimed().await? - claimed >= IN_FLIGHT)).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (memory, peak) = worker.memory()?;
    worker.kill()?;
    let line = Line::new("cost_memory_busy", peak, "MiB").limit(BUSY_MIB, Target::AtMost(1.0));
    Ok(line.note(&format!("peak with 10,000 in flight; {memory:.1} MiB resident after the claims")))
}
