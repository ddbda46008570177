//! `cycle` and `cycle_own_tx`: ready operations claimed, performed by a handler that does nothing, and finished.

use super::bare_cycle::{Shape, claim, drain, finish_rows};
use super::bed::{Bed, begin, commit, real};
use super::child::{Start, Worker};
use super::line::{Line, Runs, Target};
use super::plan::Plan;
use super::worker::{Handler, OPERATIONS};
use sqlx::Connection;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

const NOOP: &str = "bench.noop";
const RECORDING: &str = "bench.recording";
/// Connections of a run with a transaction for each operation: 90 % of what 32 give (peers.md).
const OWN_CONNECTIONS: usize = 8;

/// Fills the tables and drains them bare.
pub(super) async fn bare(bed: &Bed, rows: i64, shape: Shape) -> anyhow::Result<f64> {
    bed.reset().await?;
    bed.operations(NOOP, rows, 0).await?;
    bed.settle().await?;
    drain(bed, NOOP, rows, shape).await
}

/// The fastest shape of a bare drain on this machine, one run each.
pub(super) async fn best(bed: &Bed, rows: i64) -> anyhow::Result<Shape> {
    let mut best = (0.0, Shape { batch: 500, connections: 2, lean: false });
    for shape in Shape::all() {
        let rate = bare(bed, rows, shape).await?;
        tracing::debug!(rate, shape = shape.text(), "bare cycle");
        if rate > best.0 {
            best = (rate, shape);
        }
    }
    Ok(best.1)
}

/// Fills the tables and has a worker drain them; operations per second of the first `part`.
pub(super) async fn ours(
    bed: &Bed,
    handler: Handler,
    kind: &'static str,
    rows: i64,
    (skew, part): (i64, i64),
) -> anyhow::Result<f64> {
    bed.reset().await?;
    bed.operations(kind, rows, skew).await?;
    bed.settle().await?;
    bed.hold_claims().await?;
    let worker = Worker::start(bed, &Start::new(handler))?;
    let claimed = bed.claimed().await?;
    let from = bed.start_claims().await?;
    if part == rows {
        bed.finished(claimed, rows).await?;
        worker.stop()?;
        return Ok(real(rows) / (bed.last_finish().await? - from));
    }
    // What the worker holds and has not finished, the stop ends.
    let enough = part + i64::try_from(OPERATIONS)?;
    bed.until("enough operations claimed", async || Ok(bed.claimed().await? - claimed >= enough)).await?;
    worker.stop()?;
    let nth = "select extract(epoch from finished_at)::float8 from backline.operation_history order by finished_at offset $1 limit 1";
    let to: f64 = sqlx::query_scalar(nth).bind(part - 1).fetch_one(&bed.pool).await?;
    Ok(real(part) / (to - from))
}

/// A worker's whole drain of evenly spread operations.
pub(super) async fn noop(bed: &Bed, rows: i64) -> anyhow::Result<f64> {
    ours(bed, Handler::Noop, NOOP, rows, (0, rows)).await
}

pub(super) async fn cycle(bed: &Bed, plan: Plan, shape: Shape) -> anyhow::Result<Line> {
    let (mut ceiling, mut mine) = (Runs::default(), Runs::default());
    for _ in 0..plan.runs {
        ceiling.push(bare(bed, plan.rows, shape).await?);
        mine.push(noop(bed, plan.rows).await?);
    }
    let line = Line::against("cycle", "op/s", &mine, &ceiling, Target::AtLeast(0.65));
    Ok(line.note(&format!("bare: {}", shape.text())).peers(54_000.0, "whole contract in pgbench"))
}

pub(super) async fn own_tx(bed: &Bed, plan: Plan) -> anyhow::Result<Line> {
    let (mut ceiling, mut mine) = (Runs::default(), Runs::default());
    for _ in 0..plan.runs {
        ceiling.push(bare_own(bed, plan.own_rows).await?);
        let rows = plan.own_rows;
        mine.push(ours(bed, Handler::Recording, RECORDING, rows, (0, rows)).await?);
    }
    let line = Line::against("cycle_own_tx", "op/s", &mine, &ceiling, Target::AtLeast(0.85));
    let line =
        line.note("bare: begin, effect row, finish, commit, without the claim's lock before the effect row");
    Ok(line.peers(4_626.0, "8 connections"))
}

/// Claims in batches on each of eight connections, then one transaction an operation.
async fn bare_own(bed: &Bed, rows: i64) -> anyhow::Result<f64> {
    bed.reset().await?;
    bed.operations(RECORDING, rows, 0).await?;
    bed.settle().await?;
    let shape = Shape { batch: 100, connections: OWN_CONNECTIONS, lean: false };
    let done = Arc::new(AtomicI64::new(0));
    let mut tasks = tokio::task::JoinSet::new();
    let from = bed.now().await?;
    for _ in 0..OWN_CONNECTIONS {
        let (done, mut connection) = (Arc::clone(&done), bed.steady_connection().await?);
        tasks.spawn(async move {
            while done.load(Ordering::Relaxed) < rows {
                let claimed = claim(&mut connection, RECORDING, shape).await?;
                for one in claimed.singles() {
                    begin(&mut connection).await?;
                    let effect = sqlx::query("insert into bench.effect (operation_id) values ($1)");
                    effect.bind(one.id.first().copied()).execute(&mut connection).await?;
                    finish_rows(&mut connection, &one).await?;
                    commit(&mut connection).await?;
                    done.fetch_add(1, Ordering::Relaxed);
                }
                if claimed.id.is_empty() {
                    tokio::task::yield_now().await;
                }
            }
            anyhow::Ok(connection.close().await?)
        });
    }
    while let Some(task) = tasks.join_next().await {
        task??;
    }
    Ok(real(rows) / (bed.last_finish().await? - from))
}
