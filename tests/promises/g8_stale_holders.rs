//! G8, and H5: a stale holder can change nothing in PostgreSQL.
//!
//! Predicate: whoever stands still past its lease finds its claim gone; what it writes afterwards is refused, counted and
//! kept as evidence; the outcome is the one of the claim that was current.
//!
//! The race: a worker frozen at each boundary of an attempt, a successor that finishes the operation, and the thaw.

use backline_promises::check::{self, Expected};
use backline_promises::{Action, CrashPlan, Reply, SCRIPTED, Site, Stack, eventually};
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection};
use uuid::Uuid;

async fn frozen_at(site: &str, kind: &str) -> anyhow::Result<()> {
    let mut stack = Stack::builder().later("first", SCRIPTED).later("second", SCRIPTED).start().await?;
    let plan = CrashPlan::new(Site { name: site.to_owned(), nth: 1 }, Action::Stop, stack.dir());
    let id = stack.enqueue(kind, Uuid::now_v7(), "k", json!({"children": 2})).await?;
    stack.member("first")?.launch_with(&plan)?;
    eventually("the first worker to freeze", async || Ok(plan.fired())).await?;
    stack.member("second")?.start()?;
    stack.comes_to(id, "succeeded").await?;
    let sql = "select md5(h::text) from backline.operation_history h where id = $1";
    let before: String = sqlx::query_scalar(sql).bind(id).fetch_one(stack.pool()).await?;
    stack.member("first")?.resume()?;
    let fenced = "select count(*) from backline.attempt_evidence where operation_id = $1 and fenced";
    eventually("the refused write", async || Ok(stack.number(fenced, id).await? == 1)).await?;
    let after: String = sqlx::query_scalar(sql).bind(id).fetch_one(stack.pool()).await?;
    assert_eq!(before, after, "the outcome is the current claim's");
    assert_eq!(stack.effects().applied(id), 1);
    check::settled(&stack, &Expected { committed: vec![id], ..Expected::recovered() }).await
}

#[tokio::test]
async fn a_worker_frozen_before_its_request_leaves_changes_nothing() -> anyhow::Result<()> {
    frozen_at("promise.request.before", "effect.keyed").await
}

#[tokio::test]
async fn a_worker_frozen_with_the_answer_in_hand_changes_nothing() -> anyhow::Result<()> {
    frozen_at("promise.request.after", "effect.parent").await
}

#[tokio::test]
async fn a_worker_frozen_before_its_own_finish_changes_nothing() -> anyhow::Result<()> {
    frozen_at("tx.finish_one.begin.before", "effect.parent").await
}

#[tokio::test]
async fn a_worker_frozen_before_a_finish_in_a_batch_changes_nothing() -> anyhow::Result<()> {
    frozen_at("tx.finish.begin.before", "effect.bare").await
}

#[tokio::test]
async fn a_worker_frozen_right_after_its_claim_submits_nothing_and_changes_nothing() -> anyhow::Result<()> {
    let mut stack = Stack::builder().later("first", SCRIPTED).later("second", SCRIPTED).start().await?;
    // The second claim: the first one of a worker finds nothing yet.
    let id = stack.enqueue("effect.plain", Uuid::now_v7(), "k", json!({})).await?;
    let plan =
        CrashPlan::new(Site { name: "tx.claim.commit.after".to_owned(), nth: 1 }, Action::Stop, stack.dir());
    stack.member("first")?.launch_with(&plan)?;
    eventually("the first worker to freeze", async || Ok(plan.fired())).await?;
    assert_eq!(stack.state(id).await?, "running");
    stack.member("second")?.start()?;
    stack.comes_to(id, "succeeded").await?;
    stack.member("first")?.resume()?;
    // Its lease is over by its own clock: it gives the claim back without a request, or is refused.
    let other = stack.enqueue("effect.plain", Uuid::now_v7(), "other", json!({})).await?;
    stack.member("second")?.kill9()?;
    stack.comes_to(other, "succeeded").await?;
    assert_eq!(stack.effects().calls_of(id).len(), 1, "the frozen claim never reached the provider");
    check::settled(&stack, &Expected { committed: vec![id, other], ..Expected::recovered() }).await
}

/// While somebody's transaction has an operation, it may be ending it: nobody takes that one, and nobody waits for it who
/// has others to take.
#[tokio::test]
async fn an_operation_that_is_being_ended_keeps_its_lease_and_holds_nobody_up() -> anyhow::Result<()> {
    let builder =
        Stack::builder().later("first", SCRIPTED).later("second", SCRIPTED).later("third", SCRIPTED);
    let mut stack = builder.start().await?;
    stack.effects().answer(|_, nth| if nth == 1 { Reply::Hold } else { Reply::Apply });
    stack.member("first")?.start()?;
    let mut held = Vec::new();
    for key in ["ending", "other"] {
        let id = stack.enqueue("effect.keyed", Uuid::now_v7(), key, json!({})).await?;
        // One after the other, so that each has a lease of its own.
        eventually("its request", async || Ok(!stack.effects().calls_of(id).is_empty())).await?;
        held.push(id);
    }
    stack.member("first")?.pause()?;
    let (ending, other) = (held[0], held[1]);
    let mut finish = stack.pool().acquire().await?.detach();
    let lock = format!("begin; select from backline.operation where id = '{ending}' for update");
    sqlx::raw_sql(AssertSqlSafe(lock)).execute(&mut finish).await?;
    let over = "select count(*) from backline.lease where until < clock_timestamp()";
    eventually("both leases to run out", async || Ok(stack.count(over).await? == 2)).await?;
    stack.member("second")?.start()?;
    stack.comes_to(other, "succeeded").await?;
    assert_eq!(stack.state(ending).await?, "running", "nobody knows yet how it ends");
    assert_eq!(stack.count(over).await?, 1, "its lease is there, so that its claim is");

    finish.close().await?;
    stack.comes_to(ending, "succeeded").await?;
    stack.effects().release();
    stack.member("first")?.resume()?;
    let fenced = "select count(distinct operation_id) from backline.attempt_evidence where fenced";
    eventually("both refused writes", async || Ok(stack.count(fenced).await? == 2)).await?;
    check::settled(&stack, &Expected { committed: held, ..Expected::recovered() }).await
}

#[tokio::test]
async fn a_sequence_that_was_rewound_revives_no_stale_claim() -> anyhow::Result<()> {
    let mut stack = Stack::builder().later("first", SCRIPTED).later("second", SCRIPTED).start().await?;
    let site = Site { name: "promise.request.after".to_owned(), nth: 1 };
    let plan = CrashPlan::new(site, Action::Stop, stack.dir());
    let id = stack.enqueue("effect.bare", Uuid::now_v7(), "k", json!({})).await?;
    stack.member("first")?.launch_with(&plan)?;
    eventually("the first worker to freeze", async || Ok(plan.fired())).await?;
    // The successor gets the very same token and lease id; only the nonce tells the two claims apart.
    sqlx::raw_sql("delete from backline.lease; update backline.operation set state = 'unknown', token = null, lease_id = null, due_at = clock_timestamp();
        truncate app.token_log; select setval('backline.claim_token', 1, false); alter table backline.lease alter column id restart")
        .execute(stack.pool())
        .await?;
    stack.effects().answer(|_, _| Reply::Hold);
    stack.member("second")?.start()?;
    eventually("the successor's request", async || Ok(stack.effects().calls_of(id).len() == 2)).await?;
    stack.member("first")?.resume()?;
    let fenced = "select count(*) from backline.attempt_evidence where operation_id = $1 and fenced";
    eventually("the refused write", async || Ok(stack.number(fenced, id).await? == 1)).await?;
    assert_eq!(stack.state(id).await?, "running", "the successor still holds it");
    stack.effects().release();
    stack.comes_to(id, "succeeded").await?;
    check::settled(&stack, &Expected::recovered()).await
}
