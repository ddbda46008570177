//! G6: an unknown outcome is never resubmitted under a new identity, nor without a lookup once the provider's window
//! has passed.
//!
//! Predicate: between a call that may have left and the next call of the same operation there is either the same key
//! inside the window, or a lookup that said "not applied" after the quiet time; what lookups cannot decide is a
//! person's, visibly, and keeps its serial key.
//!
//! The races: a window that has passed, lookups that never decide or contradict, a wish to cancel, and a database that
//! was restored under the running product.

use backline_promises::check::{self, Expected};
use backline_promises::{Look, Reply, SCRIPTED, Stack, eventually};
use serde_json::json;
use uuid::Uuid;

/// An operation whose worker died with the request sent, a day and an hour ago.
async fn abandoned_yesterday(stack: &mut Stack, kind: &str) -> anyhow::Result<Uuid> {
    let held = stack.effects().calls().len();
    stack.effects().answer(|_, nth| if nth == 1 { Reply::Hold } else { Reply::Apply });
    let id = stack.enqueue(kind, Uuid::now_v7(), "k", json!({})).await?;
    eventually("the request", async || Ok(stack.effects().calls().len() > held)).await?;
    stack.member(SCRIPTED)?.kill9()?;
    sqlx::query("update backline.operation set first_submitted_at = first_submitted_at - interval '25 h' where id = $1")
        .bind(id)
        .execute(stack.pool())
        .await?;
    Ok(id)
}

/// Field case 69: <https://github.com/dimagi/commcare-hq/pull/33509>
#[tokio::test]
async fn past_the_window_nothing_is_submitted_without_a_lookup() -> anyhow::Result<()> {
    let mut stack = Stack::builder().worker(SCRIPTED).start().await?;
    let id = abandoned_yesterday(&mut stack, "effect.keyed").await?;
    stack.effects().release();
    eventually("the application", async || Ok(stack.effects().applied(id) == 1)).await?;
    stack.member(SCRIPTED)?.start()?;
    stack.comes_to(id, "succeeded").await?;
    assert_eq!(stack.effects().calls_of(id).len(), 1);
    assert!(stack.effects().lookups(id) >= 1);
    check::settled(&stack, &Expected::recovered()).await
}

/// Field case 69, the lookup cannot decide.
#[tokio::test]
async fn what_lookups_cannot_decide_is_a_persons_and_is_shown() -> anyhow::Result<()> {
    for look in [Look::Undecided, Look::Conflict] {
        let mut stack = Stack::builder().worker(SCRIPTED).start().await?;
        stack.effects().look(move |_, _| look);
        let id = abandoned_yesterday(&mut stack, "effect.keyed").await?;
        stack.member(SCRIPTED)?.start()?;
        stack.comes_to(id, "manual").await?;
        assert_eq!(stack.effects().calls_of(id).len(), 1, "no submission without a decision");
        // An undecided answer is asked for again, a contradiction is not.
        assert_eq!(stack.effects().lookups(id), if look == Look::Undecided { 5 } else { 1 });
        let shown = "select count(*) from backline.v_open_operations where state = 'manual' and failure_class = 'unknown'";
        assert_eq!(stack.count(shown).await?, 1);
        check::settled(&stack, &Expected { stuck: 1, ..Expected::recovered() }).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_wish_to_cancel_does_not_undo_what_may_have_been_applied() -> anyhow::Result<()> {
    let mut stack = Stack::builder().worker(SCRIPTED).start().await?;
    for (applied, wanted) in [(true, "succeeded"), (false, "cancelled")] {
        let seen = stack.effects().calls().len();
        stack.effects().answer(move |_, nth| match (nth, applied) {
            (1, true) => Reply::Hold,
            (1, false) => Reply::LostBefore,
            _ => Reply::Apply,
        });
        // Lookups wait until the wish is there.
        stack.effects().look(|_, _| Look::Absent);
        let id = stack.enqueue("effect.plain", Uuid::now_v7(), "k", json!({})).await?;
        eventually("the request", async || Ok(stack.effects().calls().len() > seen)).await?;
        sqlx::query("select backline.cancel_operation($1)").bind(id).execute(stack.pool()).await?;
        let sql = "select count(*) from backline.operation where id = $1 and cancel_requested_at is not null";
        eventually("the wish to be noted", async || Ok(stack.number(sql, id).await? == 1)).await?;
        stack.comes_to(id, "unknown").await?;
        stack.effects().release();
        stack.effects().look(|_, _| Look::Truth);
        stack.comes_to(id, wanted).await?;
        assert_eq!(stack.effects().calls_of(id).len(), 1);
    }
    assert!(stack.metric(SCRIPTED, "backline_unknowns_resolved_total")? >= 2.0);
    check::settled(&stack, &Expected::recovered()).await
}

#[tokio::test]
async fn after_a_restore_everything_open_is_looked_up_before_it_is_submitted() -> anyhow::Result<()> {
    let mut stack = Stack::builder().worker(SCRIPTED).start().await?;
    let organization = Uuid::now_v7();
    stack.effects().answer(|_, _| Reply::Hold);
    let sent = stack.enqueue("effect.keyed", organization, "sent", json!({})).await?;
    eventually("the request", async || Ok(stack.effects().calls().len() == 1)).await?;
    stack.member(SCRIPTED)?.kill9()?;
    stack.effects().release();
    eventually("the application", async || Ok(stack.effects().applied(sent) == 1)).await?;
    // As after a restore: the database forgot that it was presented, and is of another incarnation.
    sqlx::raw_sql("delete from backline.lease; update backline.operation set state = 'ready', token = null, nonce = null, lease_id = null,
        attempt = 0, may_have_left = false, first_submitted_at = null; update backline.ready_lane set next_due = '-infinity';
        update backline.incarnation set timeline = timeline - 1")
        .execute(stack.pool())
        .await?;
    stack.effects().answer(|_, _| Reply::Apply);
    stack.member(SCRIPTED)?.start()?;
    stack.comes_to(sent, "succeeded").await?;
    assert!(stack.effects().lookups(sent) >= 1, "looked up");
    assert_eq!(stack.effects().calls_of(sent).len(), 1, "and not submitted");
    check::settled(&stack, &Expected::default()).await
}
