//! `converge`: desired states that change faster than their provider answers.

use super::bare_fold::{self, Shape};
use super::bed::{Bed, real};
use super::bumps::{self, PRODUCERS, STATES, Way};
use super::child::{Start, Worker};
use super::line::{Line, Runs, Target};
use super::plan::Plan;
use super::provider::{ANSWER, Follow, Provider, Told};
use super::worker::Handler;
use anyhow::ensure;
use backline_runtime::Reconcile;
use std::time::Duration;

pub(super) async fn converge(bed: &Bed, plan: Plan) -> anyhow::Result<Vec<Line>> {
    let time = Duration::from_secs(plan.seconds);
    let mut best = (0.0, Shape::ALL[0]);
    for shape in Shape::ALL {
        let rate = bare_fold::rate(bed, time, shape).await?;
        tracing::debug!(rate, shape = shape.text(), "bare fold");
        if rate > best.0 {
            best = (rate, shape);
        }
    }
    let (mut ceiling, mut bumps) = (Runs::default(), Runs::default());
    let (mut collapse, mut densest, mut tail) = (Runs::default(), Runs::default(), Runs::default());
    for _ in 0..plan.runs {
        ceiling.push(bare_fold::rate(bed, time, best.1).await?);
        let run = ours(bed, time).await?;
        bumps.push(run.rate);
        collapse.push(run.collapse);
        densest.push(run.densest);
        tail.push(run.tail);
    }
    let answer = ANSWER.as_secs_f64() * 1000.0;
    Ok(vec![
        Line::against("converge", "bump/s", &bumps, &ceiling, Target::None)
            .note(&format!(
                "no target; until the last bump is accepted, while a worker converges; a bump: a changed row and a request \
                 in one transaction; {PRODUCERS} producers, {STATES} states; a generation: the bench's own handler (not a product \
                 worker's) reads one row, awaits one answer of {answer} ms and records one row"
            ))
            .note(&format!("bare: a plain insert, folded without a worker, {}", best.1.text())),
        Line::new("converge_collapse", collapse.median(), "bump/call")
            .limit(densest.median(), Target::None)
            .spread(&collapse)
            .note("no target; over the least that is possible, one call after another for every state: 1.0 wastes no time")
            .note("every state ended at its newest generation, and the stand-in shows its newest version"),
        Line::new("converge_tail", tail.median(), "ms")
            .limit(2.0 * answer, Target::None)
            .spread(&tail)
            .note("no target; from the last commit to the last outcome, over the call under way and one more"),
    ])
}

/// One run of the product.
struct Run {
    /// Bumps accepted per second.
    rate: f64,
    /// Bumps per call.
    collapse: f64,
    /// Bumps per call if each state had been called without a pause.
    densest: f64,
    /// Milliseconds from the last commit to the last outcome.
    tail: f64,
}

async fn ours(bed: &Bed, time: Duration) -> anyhow::Result<Run> {
    bed.reset().await?;
    bed.settle().await?;
    let provider = Provider::start().await?;
    let start = Start { provider: Some(&provider.host), ..Start::new(Handler::Follow) };
    let worker = Worker::start(bed, &start)?;
    let mut stopped = 0.0;
    let (bumps, seconds) = bumps::during(bed, time, Way::Product, async || {
        stopped = bed.now().await?;
        let accepted = "select (not exists (select from backline.intake))::int::float8";
        bed.until("all bumps accepted", async || Ok(bed.number(accepted).await? > 0.0)).await
    })
    .await?;
    let ended = "select (not exists (select from backline.operation where state not in ('manual', 'dead')))::int::float8";
    bed.until("all states converged", async || Ok(bed.number(ended).await? > 0.0)).await?;
    let last = bed.last_finish().await?;
    worker.stop()?;
    let reached = sqlx::query_as(include_str!("sql/reached.sql")).bind(Follow::KIND);
    let reached: Vec<Reached> = reached.fetch_all(&mut bed.steady_connection().await?).await?;
    let told = provider.told();
    converged(&reached, &told, bumps)?;
    let (bumps, calls) = (real(bumps), real(told.calls));
    let most = real(STATES) * (time.as_secs_f64() + last - stopped) / ANSWER.as_secs_f64();
    Ok(Run {
        rate: bumps / seconds,
        collapse: bumps / calls,
        densest: bumps / most,
        tail: (last - stopped) * 1000.0,
    })
}

/// What became of one desired state.
#[derive(Debug, Clone, sqlx::FromRow)]
struct Reached {
    id: i64,
    /// Committed bumps.
    version: i64,
    /// Generations the runtime has accepted.
    accepted: i64,
    /// Newest generation that ended.
    ended: Option<i64>,
    outcome: Option<String>,
    /// Version that its outcome says was shown.
    shown: Option<i64>,
    /// Something of it is still owed.
    open: bool,
}

/// Refuses a run in which a bump was lost, or a state did not end at its newest generation: its figures say nothing.
fn converged(reached: &[Reached], told: &Told, bumps: i64) -> anyhow::Result<()> {
    if let Some(wrong) = &told.wrong {
        anyhow::bail!("the provider saw {wrong}");
    }
    let versions: i64 = reached.iter().map(|state| state.version).sum();
    ensure!(versions == bumps && bumps > 0, "{bumps} bumps were committed, {versions} are there");
    for state in reached.iter().filter(|state| state.version > 0) {
        let newest = Some(state.version);
        let provider = told.shown.get(&state.id).copied();
        ensure!(
            state.accepted == state.version
                && state.ended == newest
                && state.outcome.as_deref() == Some("succeeded")
                && state.shown == newest
                && provider == newest
                && !state.open,
            "state {} did not converge: the provider shows version {provider:?}, {state:?}",
            state.id
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Reached, converged};
    use crate::bench::provider::Told;

    fn told(shown: &[(i64, i64)]) -> Told {
        Told { calls: 9, shown: shown.iter().copied().collect(), ..Told::default() }
    }

    fn state(id: i64, version: i64) -> Reached {
        let (ended, outcome) = (Some(version), Some("succeeded".to_owned()));
        Reached { id, version, accepted: version, ended, outcome, shown: ended, open: false }
    }

    #[test]
    fn only_the_newest_generation_everywhere_is_convergence() {
        let good =
            [state(1, 4), state(2, 3), Reached { ended: None, outcome: None, shown: None, ..state(3, 0) }];
        let provider = told(&[(1, 4), (2, 3)]);
        assert!(converged(&good, &provider, 7).is_ok());
        assert!(converged(&good, &provider, 8).is_err(), "a bump was lost");
        assert!(converged(&good, &told(&[(1, 3), (2, 3)]), 7).is_err(), "the provider is behind");
        assert!(converged(&good, &told(&[(1, 4)]), 7).is_err(), "the provider was never told");
        let wrong = Told { wrong: Some("two calls".to_owned()), ..provider.clone() };
        assert!(converged(&good, &wrong, 7).is_err(), "the provider saw what must not be");
        for broken in [
            Reached { accepted: 3, ..state(1, 4) },
            Reached { ended: Some(3), ..state(1, 4) },
            Reached { ended: None, outcome: None, ..state(1, 4) },
            Reached { outcome: Some("rejected".to_owned()), ..state(1, 4) },
            Reached { shown: Some(3), ..state(1, 4) },
            Reached { open: true, ..state(1, 4) },
        ] {
            let text = format!("{broken:?}");
            assert!(converged(&[broken, state(2, 3)], &provider, 7).is_err(), "{text}");
        }
        assert!(converged(&[], &told(&[]), 0).is_err(), "nothing was asked for");
    }
}
