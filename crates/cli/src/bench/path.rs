//! `path`: from the producer's transaction through outbox, broker, acceptance and claim to the recorded outcome.

use super::bare_cycle::Shape;
use super::bed::{Bed, begin, commit, real};
use super::child::{Start, Worker};
use super::line::{Line, Runs, Target};
use super::plan::Plan;
use super::relay::Running;
use super::worker::Handler;
use super::{cycle, emit};

/// Producers and the events of each of their transactions.
const PRODUCERS: i64 = 2;
const EVENTS: i64 = 100;

pub(super) async fn path(bed: &Bed, plan: Plan, shape: Shape) -> anyhow::Result<Line> {
    let (mut ceiling, mut mine) = (Runs::default(), Runs::default());
    for _ in 0..plan.runs {
        ceiling.push(cycle::bare(bed, plan.rows, shape).await?);
        mine.push(ours(bed, plan.rows).await?);
    }
    let line = Line::against("path", "op/s", &mine, &ceiling, Target::AtLeast(0.15));
    Ok(line
        .note("from the first append to the last outcome, producers included; bare: the cycle's; aim 0.25"))
}

async fn ours(bed: &Bed, rows: i64) -> anyhow::Result<f64> {
    bed.reset().await?;
    bed.settle().await?;
    let running = Running::start(bed).await?;
    let start = Start { emulator: Some(&running.host), ..Start::new(Handler::Noop) };
    let worker = Worker::start(bed, &start)?;
    let claimed = bed.claimed().await?;
    let from = bed.now().await?;
    let mut tasks = tokio::task::JoinSet::new();
    for producer in 0..PRODUCERS {
        let mut connection = bed.connection().await?;
        tasks.spawn(async move {
            let share = rows / PRODUCERS;
            for first in (producer * share..(producer + 1) * share).step_by(usize::try_from(EVENTS)?) {
                let end = (first + EVENTS).min((producer + 1) * share);
                let events = (first..end).map(emit::event).collect::<anyhow::Result<Vec<_>>>()?;
                begin(&mut connection).await?;
                backline_outbox::append_all(&mut connection, &events).await?;
                commit(&mut connection).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(task) = tasks.join_next().await {
        task??;
    }
    bed.finished(claimed, rows / PRODUCERS * PRODUCERS).await?;
    let rate = real(rows) / (bed.last_finish().await? - from);
    worker.stop()?;
    running.stop().await?;
    Ok(rate)
}
