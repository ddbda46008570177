//! G4, and H4: attempts are at least once; at most one completion per (operation, generation) is accepted.
//!
//! Predicate: `operation_history` has one row per (id, generation), never changed; a record's own rows, events and
//! children exist exactly if that row does; every row was written by the claim that was current.
//!
//! The races: a worker that dies right before and right after each COMMIT of its finish, a finish whose COMMIT reply is
//! lost, duplicated and redelivered events, and a record that refuses.

use backline_promises::check::{self, CANARY, Expected};
use backline_promises::{Action, CrashPlan, EMULATOR, SCRIPTED, Site, Stack, eventually};
use serde_json::json;
use uuid::Uuid;

fn plan(stack: &Stack, name: &str, nth: u64, action: Action) -> CrashPlan {
    CrashPlan::new(Site { name: name.to_owned(), nth }, action, stack.dir())
}

/// Kills the worker at `site` while one parent with children is under way.
async fn dies_at(site: &str) -> anyhow::Result<()> {
    let mut stack = Stack::builder().later(SCRIPTED, SCRIPTED).start().await?;
    let plan = plan(&stack, site, 1, Action::Kill);
    let id =
        stack.enqueue("effect.parent", Uuid::now_v7(), "k", json!({"value": CANARY, "children": 3})).await?;
    stack.member(SCRIPTED)?.launch_with(&plan)?;
    eventually("the crash", async || Ok(stack.member(SCRIPTED)?.ended()?.is_some())).await?;
    assert!(plan.fired());
    stack.member(SCRIPTED)?.start()?;
    stack.comes_to(id, "succeeded").await?;
    assert_eq!(stack.effects().applied(id), 1);
    check::settled(&stack, &Expected { committed: vec![id], ..Expected::default() }).await?;
    assert_eq!(
        stack.count("select count(*) from backline.operation_history").await?,
        4,
        "a parent and its children"
    );
    Ok(())
}

#[tokio::test]
async fn a_worker_that_dies_before_its_finish_commits_repeats_the_original_submission() -> anyhow::Result<()>
{
    dies_at("tx.finish_one.commit.before").await
}

#[tokio::test]
async fn a_worker_that_dies_after_its_finish_committed_repeats_nothing() -> anyhow::Result<()> {
    dies_at("tx.finish_one.commit.after").await
}

#[tokio::test]
async fn a_worker_that_dies_between_answer_and_record_resolves_the_original_operation() -> anyhow::Result<()>
{
    dies_at("promise.request.after").await
}

#[tokio::test]
async fn a_finish_whose_commit_reply_is_lost_is_one_completion() -> anyhow::Result<()> {
    let stack = Stack::builder().behind_proxy().worker(SCRIPTED).start().await?;
    for (n, kind) in ["effect.keyed", "effect.bare", "effect.plain", "effect.parent"].into_iter().enumerate()
    {
        stack.proxy()?.swallow_commit_of("backline.operation_history");
        let id = stack.enqueue(kind, Uuid::now_v7(), "k", json!({"children": 1})).await?;
        stack.comes_to(id, "succeeded").await?;
        eventually("the lost reply", async || Ok(stack.proxy()?.swallowed() == n + 1)).await?;
        assert_eq!(stack.effects().calls_of(id).len(), 1, "{kind}: a lost reply is no lost outcome");
        assert_eq!(
            stack
                .number("select count(*) from backline.attempt_evidence where operation_id = $1", id)
                .await?,
            0,
            "{kind}"
        );
    }
    check::settled(&stack, &Expected::recovered()).await
}

#[tokio::test]
async fn an_event_delivered_many_times_is_one_operation() -> anyhow::Result<()> {
    let mut stack = Stack::builder().worker(SCRIPTED).start().await?;
    let faults = json!({"duplicate": {"probability": 1.0, "copies": 5, "new_message_id": true}, "reorder": {"window": 20}, "drop_acks": {"every": 3}});
    stack.add_faults(EMULATOR, &faults)?;
    let organization = Uuid::now_v7();
    let mut committed = Vec::new();
    for n in 0..30 {
        let payload = json!({"key": n.to_string(), "order": {}});
        committed.push(stack.emit("ThingOrdered", organization, &n.to_string(), payload).await?);
    }
    check::settled(&stack, &Expected { committed, ..Expected::default() }).await?;
    eventually("repeated deliveries", async || {
        Ok(stack.metric(SCRIPTED, "backline_deliveries_repeated_total")? > 0.0)
    })
    .await?;
    assert_eq!(stack.count("select count(*) from backline.operation_history").await?, 30);
    assert_eq!(stack.effects().calls().len(), 30);
    check::settled(&stack, &Expected::recovered()).await
}

#[tokio::test]
async fn a_record_that_is_refused_keeps_the_effect_and_is_written_later() -> anyhow::Result<()> {
    let stack = Stack::builder().worker(SCRIPTED).start().await?;
    sqlx::raw_sql("alter table app.done add constraint refused check (outcome <> 'succeeded')")
        .execute(stack.pool())
        .await?;
    let id = stack.enqueue("effect.keyed", Uuid::now_v7(), "k", json!({"value": CANARY})).await?;
    eventually("the refused record", async || {
        let sql = "select count(*) from backline.attempt_evidence where operation_id = $1 and code = 'record_failed'";
        Ok(stack.number(sql, id).await? > 0)
    })
    .await?;
    sqlx::raw_sql("alter table app.done drop constraint refused").execute(stack.pool()).await?;
    stack.comes_to(id, "succeeded").await?;
    assert_eq!(stack.effects().applied(id), 1, "repeated under its key, or looked up; never a second effect");
    check::settled(&stack, &Expected::recovered()).await
}
