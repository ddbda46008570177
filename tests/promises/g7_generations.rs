//! G7, and H6: a newer generation is never lost to an older attempt.
//!
//! Predicate: after everything has come to rest, the last generation asked for is the last that ended, and the
//! provider's state is the desired one.
//!
//! The races: the desired state changes while an attempt runs, while its worker dies, while its worker sleeps past the
//! lease, while its finish commits with a lost reply, and after it has given up for good.

use backline_promises::check::{self, Expected};
use backline_promises::{Reply, SCRIPTED, Stack, enqueue_in, eventually};
use serde_json::json;
use uuid::Uuid;

/// Wants `n` and says so, in one transaction, as an application does.
async fn want(stack: &Stack, organization: Uuid, n: i64) -> anyhow::Result<Uuid> {
    let mut connection = stack.pool().acquire().await?;
    sqlx::raw_sql("begin").execute(&mut *connection).await?;
    let sql = "insert into app.desired values ('k', $1) on conflict (key) do update set n = excluded.n";
    sqlx::query(sql).bind(n).execute(&mut *connection).await?;
    let id = enqueue_in(&mut connection, "effect.desired", organization, "k", &json!({})).await?;
    sqlx::raw_sql("commit").execute(&mut *connection).await?;
    Ok(id)
}

async fn folded(stack: &Stack, id: Uuid, generation: i64) -> anyhow::Result<()> {
    let sql = "select last_generation from backline.operation_identity where id = $1";
    eventually("the newer generation", async || Ok(stack.number(sql, id).await? == generation)).await
}

#[tokio::test]
async fn a_change_during_an_attempt_is_carried_out_after_it() -> anyhow::Result<()> {
    let stack = Stack::builder().worker(SCRIPTED).start().await?;
    let organization = Uuid::now_v7();
    stack.effects().answer(|_, nth| if nth == 1 { Reply::Hold } else { Reply::Apply });
    let id = want(&stack, organization, 1).await?;
    eventually("the first attempt", async || Ok(stack.effects().calls().len() == 1)).await?;
    want(&stack, organization, 2).await?;
    folded(&stack, id, 2).await?;
    stack.effects().release();
    stack.comes_to(id, "succeeded").await?;
    check::settled(&stack, &Expected::default()).await?;
    assert_eq!(stack.effects().desired("k"), Some(2));
    let generations = "select count(distinct generation) from backline.operation_history where id = $1";
    assert_eq!(stack.number(generations, id).await?, 2, "each has its outcome");
    Ok(())
}

#[tokio::test]
async fn a_change_while_the_worker_dies_is_carried_out() -> anyhow::Result<()> {
    let mut stack = Stack::builder().worker(SCRIPTED).start().await?;
    let organization = Uuid::now_v7();
    stack.effects().answer(|_, nth| if nth == 1 { Reply::Lost } else { Reply::Apply });
    let id = want(&stack, organization, 1).await?;
    eventually("the first attempt", async || Ok(stack.effects().calls().len() == 1)).await?;
    stack.member(SCRIPTED)?.kill9()?;
    want(&stack, organization, 2).await?;
    stack.member(SCRIPTED)?.start()?;
    stack.comes_to(id, "succeeded").await?;
    check::settled(&stack, &Expected::recovered()).await?;
    assert_eq!(stack.effects().desired("k"), Some(2));
    Ok(())
}

/// The first worker is asleep with its request at the provider; a second one is not started yet. The kind declares that a
/// request may land so late.
async fn asleep(linger: &str) -> anyhow::Result<(Stack, Uuid, Uuid)> {
    let plan =
        Stack::builder().env("first", "PROMISE_LINGER", linger).env("second", "PROMISE_LINGER", linger);
    let mut stack = plan.worker_as("first", SCRIPTED).later("second", SCRIPTED).start().await?;
    let organization = Uuid::now_v7();
    stack.effects().answer(|_, nth| if nth == 1 { Reply::Hold } else { Reply::Apply });
    let id = want(&stack, organization, 1).await?;
    eventually("the first attempt", async || Ok(stack.effects().calls().len() == 1)).await?;
    stack.member("first")?.pause()?;
    Ok((stack, organization, id))
}

#[tokio::test]
async fn a_sleeping_attempt_that_lands_late_does_not_leave_its_old_state_behind() -> anyhow::Result<()> {
    // Declared long enough that the late request surely lands inside it, however busy the machine is.
    let (mut stack, organization, id) = asleep("5s").await?;
    want(&stack, organization, 2).await?;
    stack.member("second")?.start()?;
    eventually("the newer state", async || Ok(stack.effects().desired("k") == Some(2))).await?;
    // Within the time that the kind declares for late requests, the old one is applied after all.
    stack.effects().release();
    stack.member("first")?.resume()?;
    eventually("the desired state again", async || {
        let calls = stack.effects().calls_of(id);
        let old = calls.first().and_then(|call| call.answered);
        Ok(old.is_some()
            && stack.effects().desired("k") == Some(2)
            && calls.iter().skip(1).any(|call| Some(call.arrived) > old))
    })
    .await?;
    check::settled(&stack, &Expected::recovered()).await?;
    assert_eq!(stack.effects().desired("k"), Some(2));
    Ok(())
}

/// As above, and the state changes once more while the verifying read is waited for: the change is not made to wait
/// with it, and the read is made all the same.
#[tokio::test]
async fn a_change_before_a_verifying_read_is_carried_out_at_once_and_verified_nevertheless()
-> anyhow::Result<()> {
    let (mut stack, organization, id) = asleep("8s").await?;
    stack.member("second")?.start()?;
    let waits = "select count(*) from backline.operation where id = $1 and state = 'ready' and due_at > clock_timestamp()";
    eventually("a verifying read that is waited for", async || Ok(stack.number(waits, id).await? == 1))
        .await?;
    want(&stack, organization, 2).await?;
    eventually("the newer state", async || Ok(stack.effects().desired("k") == Some(2))).await?;
    // The wait is not over, so the request that nobody waits for may still land, and does.
    eventually("it to be waited for still", async || Ok(stack.number(waits, id).await? == 1)).await?;
    stack.effects().release();
    stack.member("first")?.resume()?;
    check::settled(&stack, &Expected::recovered()).await?;
    let calls = stack.effects().calls_of(id);
    let old = calls.first().and_then(|call| call.answered);
    anyhow::ensure!(old.is_some() && calls.last().map(|call| call.arrived) > old, "nobody looked after it");
    assert_eq!(stack.effects().desired("k"), Some(2));
    Ok(())
}

#[tokio::test]
async fn a_change_around_a_finish_whose_reply_is_lost_is_carried_out() -> anyhow::Result<()> {
    let stack = Stack::builder().behind_proxy().worker(SCRIPTED).start().await?;
    let organization = Uuid::now_v7();
    stack.proxy()?.swallow_commit_of("app.done");
    let id = want(&stack, organization, 1).await?;
    eventually("the lost reply", async || Ok(stack.proxy()?.swallowed() == 1)).await?;
    want(&stack, organization, 2).await?;
    check::settled(&stack, &Expected::default()).await?;
    assert_eq!(stack.effects().desired("k"), Some(2));
    assert_eq!(stack.number("select count(*) from backline.operation_history where id = $1", id).await?, 2);
    Ok(())
}

/// Field case 49, second half: <https://github.com/margince/margince/issues/1257>
#[tokio::test]
async fn a_change_after_the_last_attempt_starts_anew() -> anyhow::Result<()> {
    let stack = Stack::builder().worker(SCRIPTED).start().await?;
    let organization = Uuid::now_v7();
    stack.effects().answer(|call, _| if call.value["n"] == 1 { Reply::InUse } else { Reply::Apply });
    let id = want(&stack, organization, 1).await?;
    stack.comes_to(id, "dead").await?;
    want(&stack, organization, 2).await?;
    stack.comes_to(id, "succeeded").await?;
    check::settled(&stack, &Expected::recovered()).await?;
    assert_eq!(stack.effects().desired("k"), Some(2));
    Ok(())
}

#[tokio::test]
async fn a_deleted_row_ends_the_operation_as_obsolete() -> anyhow::Result<()> {
    let stack = Stack::builder().worker(SCRIPTED).start().await?;
    let id = stack.enqueue("effect.desired", Uuid::now_v7(), "gone", json!({})).await?;
    stack.comes_to(id, "obsolete").await?;
    assert!(stack.effects().calls().is_empty());
    check::settled(&stack, &Expected { committed: vec![id], ..Expected::default() }).await
}
