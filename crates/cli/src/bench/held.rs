//! `held_snapshot`: a session holds a snapshot over rows that died, and producers commit two seconds late.

use super::bare_cycle::{Shape, drain};
use super::bed::{Bed, begin, commit, organization, real};
use super::child::{Start, Worker};
use super::emit;
use super::line::{Line, Runs, Target};
use super::plan::Plan;
use super::relay::{Running, bare_drain, timed};
use super::worker::Handler;
use sqlx::postgres::PgConnection;
use std::time::Duration;
use tokio::task::JoinSet;

const CLAIMERS: usize = 8;
const LATE_PRODUCERS: i64 = 4;
/// How long a late producer keeps its transaction open.
const LATE: Duration = Duration::from_secs(2);
const KIND: &str = "bench.noop";

pub(super) async fn claims(bed: &Bed, plan: Plan) -> anyhow::Result<Line> {
    let (mut free, mut held) = (Runs::default(), Runs::default());
    for _ in 0..plan.runs {
        free.push(claims_once(bed, plan, false).await?);
        held.push(claims_once(bed, plan, true).await?);
    }
    let line = Line::against("held_snapshot_claims", "op/s", &held, &free, Target::AtLeast(0.75));
    Ok(line.note(&format!("{CLAIMERS} worker processes, {} rows churned", plan.churn)))
}

async fn claims_once(bed: &Bed, plan: Plan, hold: bool) -> anyhow::Result<f64> {
    bed.reset().await?;
    let snapshot = if hold { Some(snapshot(bed).await?) } else { None };
    bed.operations(KIND, plan.churn, 0).await?;
    drain(bed, KIND, plan.churn, Shape { batch: 500, connections: 2, lean: false }).await?;
    bed.operations(KIND, plan.rows, 0).await?;
    bed.settle().await?;
    bed.hold_claims().await?;
    let start = Start { operations: 250, ..Start::new(Handler::Noop) };
    let mut workers = Vec::new();
    for _ in 0..CLAIMERS {
        workers.push(Worker::start(bed, &start)?);
    }
    let late = late_producers(bed, true);
    let claimed = bed.claimed().await?;
    let from = bed.start_claims().await?;
    bed.until("enough claimed", async || Ok(bed.claimed().await? - claimed >= plan.rows)).await?;
    drop(late);
    for worker in workers {
        worker.stop()?;
    }
    let nth = "select extract(epoch from finished_at)::float8 from backline.operation_history order by finished_at offset $1 limit 1";
    let last = plan.churn + plan.rows - 2000;
    let to: f64 = sqlx::query_scalar(nth).bind(last - 1).fetch_one(&bed.pool).await?;
    release(snapshot).await?;
    Ok(real(plan.rows - 2000) / (to - from))
}

pub(super) async fn relay(bed: &Bed, plan: Plan) -> anyhow::Result<Line> {
    let (mut free, mut held) = (Runs::default(), Runs::default());
    for _ in 0..plan.runs {
        free.push(relay_once(bed, plan, false).await?);
        held.push(relay_once(bed, plan, true).await?);
    }
    let line = Line::against("held_snapshot_relay", "entry/s", &held, &free, Target::AtLeast(0.75));
    Ok(line.note(&format!("{} entries churned", plan.churn)))
}

async fn relay_once(bed: &Bed, plan: Plan, hold: bool) -> anyhow::Result<f64> {
    bed.reset().await?;
    let snapshot = if hold { Some(snapshot(bed).await?) } else { None };
    bed.entries(plan.churn).await?;
    bare_drain(bed, plan.churn, (500, 2)).await?;
    bed.entries(plan.rows).await?;
    bed.settle().await?;
    let running = Running::start(bed).await?;
    let late = late_producers(bed, false);
    let rate = timed(bed, plan.rows).await?;
    drop(late);
    running.stop().await?;
    release(snapshot).await?;
    Ok(rate)
}

/// A session whose snapshot keeps every row that dies from now on.
async fn snapshot(bed: &Bed) -> anyhow::Result<PgConnection> {
    let mut connection = bed.connection().await?;
    sqlx::raw_sql("begin isolation level repeatable read").execute(&mut connection).await?;
    sqlx::raw_sql("select count(*) from backline.kind").execute(&mut connection).await?;
    Ok(connection)
}

async fn release(snapshot: Option<PgConnection>) -> anyhow::Result<()> {
    match snapshot {
        Some(mut connection) => Ok(commit(&mut connection).await?),
        None => Ok(()),
    }
}

/// Producers that insert, wait, and commit; they stop when dropped.
fn late_producers(bed: &Bed, operations: bool) -> JoinSet<anyhow::Result<()>> {
    let mut tasks = JoinSet::new();
    for producer in 0..LATE_PRODUCERS {
        let bed = bed.clone();
        tasks.spawn(async move {
            let mut connection = bed.connection().await?;
            for number in (producer * 10_000_000_i64..).step_by(10) {
                begin(&mut connection).await?;
                for number in number..number + 10 {
                    let event = emit::event(number)?;
                    if operations {
                        let (key, tenant) = (format!("late-{number}"), organization(number));
                        let operation = backline_outbox::NewOperation::new(KIND, tenant, key, event.payload);
                        backline_outbox::enqueue(&mut connection, &operation).await?;
                    } else {
                        backline_outbox::append(&mut connection, &event).await?;
                    }
                }
                tokio::time::sleep(LATE).await;
                commit(&mut connection).await?;
            }
            Ok(())
        });
    }
    tasks
}
