//! The eager handle: sooner, under the same claim, bounded, and never needed (obligations D8a, G11).

use crate::handlers::{Gated, Long};
use crate::support::{Running, SOON, config, enqueue};
use anyhow::{Result, ensure};
use backline_runtime::transition::State;
use backline_runtime::{Command, Eager, Reconcile, Status, Workload};
use sqlx::PgPool;
use std::collections::BTreeSet;
use std::time::Duration;
use uuid::Uuid;

const LEASE: Duration = Duration::from_secs(30);
/// Long against a look, short for a test: what would have happened by itself had happened.
const MOMENT: Duration = Duration::from_millis(300);

fn workload(pool: &PgPool) -> Result<Workload> {
    Ok(Workload::new("test", config(pool, LEASE)?))
}

fn ended(status: &Status) -> Option<State> {
    match status {
        Status::Ended { outcome, .. } => Some(*outcome),
        Status::Open { .. } => None,
    }
}

fn open_in(status: &Status) -> Option<&str> {
    match status {
        Status::Ended { .. } => None,
        Status::Open { state, .. } => state.as_deref(),
    }
}

/// Commits requests until one is left alone, which shows that the loop sleeps; the id of that one.
async fn asleep(pool: &PgPool, eager: &Eager) -> Result<Uuid> {
    for n in 0..100 {
        let operation = enqueue(pool, Gated::KIND, &format!("nobody hears {n}")).await?;
        if open_in(&eager.outcome(operation, MOMENT).await) == Some("requested") {
            return Ok(operation);
        }
    }
    anyhow::bail!("the loop never sleeps")
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn a_commit_that_is_told_is_picked_up_between_two_polls(pool: PgPool) -> Result<()> {
    let (handler, _began) = Gated::new(1000);
    let workload = workload(&pool)?.command(handler);
    let eager = workload.eager();
    let running = Running::start(workload);
    let operation = asleep(&pool, &eager).await?;
    eager.committed();
    let status = eager.outcome(operation, SOON).await;
    ensure!(
        status
            == Status::Ended { generation: 1, outcome: State::Succeeded, code: None, output: Some(1.into()) },
        "{status:?}"
    );
    running.stop().await
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn two_runners_that_race_claim_each_operation_once(pool: PgPool) -> Result<()> {
    let (handler, began) = Gated::new(1000);
    let (one, two) = (workload(&pool)?.command(handler.clone()), workload(&pool)?.command(handler));
    let eager = [one.eager(), two.eager()];
    let running = [Running::start(one), Running::start(two)];
    let mut asked = BTreeSet::new();
    for n in 0..60 {
        asked.insert(enqueue(&pool, Gated::KIND, &format!("raced {n}")).await?);
        eager.iter().for_each(Eager::committed);
    }
    for operation in &asked {
        let status = eager[0].outcome(*operation, SOON).await;
        ensure!(ended(&status) == Some(State::Succeeded), "{status:?}");
    }
    let mut performed = BTreeSet::new();
    for _ in &asked {
        ensure!(performed.insert(began.next().await?), "an operation was performed twice");
    }
    assert_eq!(performed, asked);
    for running in running {
        running.stop().await?;
    }
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn a_slow_operation_is_reported_open_and_goes_on(pool: PgPool) -> Result<()> {
    let (handler, began) = Gated::new(0);
    let leave = handler.leave.clone();
    let workload = workload(&pool)?.command(handler);
    let eager = workload.eager();
    let running = Running::start(workload);
    let operation = enqueue(&pool, Gated::KIND, "slow").await?;
    eager.committed();
    assert_eq!(began.next().await?, operation);
    let status = eager.outcome(operation, MOMENT).await;
    ensure!(open_in(&status) == Some("running"), "{status:?}");
    // A caller that goes away in the middle.
    drop(tokio::time::timeout(MOMENT, eager.outcome(operation, SOON)).await);
    leave.add_permits(1);
    let status = eager.outcome(operation, SOON).await;
    ensure!(ended(&status) == Some(State::Succeeded), "{status:?}");
    running.stop().await
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn the_end_of_an_older_generation_is_not_the_answer(pool: PgPool) -> Result<()> {
    let (handler, _began) = Long::new(1, Duration::from_millis(1));
    let workload = workload(&pool)?.reconcile(handler);
    let eager = workload.eager();
    let running = Running::start(workload);
    for wanted in 1..=2 {
        let operation = enqueue(&pool, Long::KIND, "state").await?;
        eager.committed();
        let status = eager.outcome(operation, SOON).await;
        ensure!(
            matches!(&status, Status::Ended { generation, outcome: State::Succeeded, .. } if *generation == wanted),
            "{wanted}: {status:?}"
        );
    }
    running.stop().await
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn a_hint_that_nobody_hears_loses_nothing(pool: PgPool) -> Result<()> {
    let (handler, _began) = Gated::new(1000);
    let never_runs = workload(&pool)?.command(handler.clone());
    let operation = enqueue(&pool, Gated::KIND, "unheard").await?;
    let unheard = never_runs.eager();
    unheard.committed();
    assert_eq!(open_in(&unheard.outcome(operation, MOMENT).await), Some("requested"));
    drop(never_runs);
    let nobody_asked = Uuid::from_u128(1);
    assert_eq!(unheard.outcome(nobody_asked, MOMENT).await, Status::Open { state: None, code: None });

    let running = Running::start(workload(&pool)?.command(handler));
    assert_eq!(ended(&unheard.outcome(operation, SOON).await), Some(State::Succeeded));
    running.stop().await
}
