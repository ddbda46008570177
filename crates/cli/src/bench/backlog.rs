//! `backlog`: does a million waiting operations of one organization slow the claims down?

use super::bed::Bed;
use super::cycle;
use super::line::{Line, Runs, Target};
use super::plan::Plan;
use super::worker::Handler;

/// What the large backlog is compared with.
const SMALL: i64 = 10_000;
/// Percent of the large backlog that one organization owns.
const SKEW: i64 = 99;

pub(super) async fn backlog(bed: &Bed, plan: Plan) -> anyhow::Result<Line> {
    let (mut small, mut large) = (Runs::default(), Runs::default());
    for _ in 0..plan.runs {
        small.push(cycle::noop(bed, SMALL).await?);
        let part = (SKEW, plan.backlog_part);
        large.push(cycle::ours(bed, Handler::Noop, "bench.noop", plan.backlog, part).await?);
    }
    let line = Line::against("backlog", "op/s", &large, &small, Target::AtLeast(0.9));
    let (all, part) = (plan.backlog, plan.backlog_part);
    Ok(line.note(&format!(
        "first {part} of {all} ready, {SKEW} % in one organization, over 10,000 spread evenly"
    )))
}
