//! Conversations at Twilio follow what an application has committed.
//!
//! Predicate: at rest the provider's participants are the committed members, what was closed or archived is closed and
//! was never opened again, what was deleted is gone, under the SID that its tombstone kept.
//!
//! The races: replies that are lost after the effect, lists that lag behind writes, a row that goes while its
//! conversation is being created, and intents that are older than the state they find.

use anyhow::ensure;
use backline_promises::check::{self, Expected};
use backline_promises::{Chat, SANDBOX, Stack, TWILIO, eventually};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use uuid::Uuid;

fn people(of: &[usize]) -> BTreeSet<String> {
    of.iter().map(|n| format!("user-{n}")).collect()
}

async fn stack() -> anyhow::Result<Stack> {
    Stack::builder().without_relay().worker(TWILIO).start().await
}

async fn present(stack: &Stack, conversation: Uuid, wanted: &[usize]) -> anyhow::Result<()> {
    let what = format!("{wanted:?} to be the participants");
    eventually(&what, async || Ok(stack.room(conversation).is_ok_and(|room| room.people == people(wanted))))
        .await
}

async fn called(stack: &Stack, kind: &str) -> anyhow::Result<()> {
    eventually(kind, async || Ok(stack.journal()?.iter().any(|line| line["kind"] == kind))).await
}

/// Arms one fault for the first call of a kind.
fn once(stack: &mut Stack, kind: &str, fault: Value) -> anyhow::Result<()> {
    let rule = json!({"match": {"provider": "twilio", "kind": kind}, "times": 1, "fault": fault});
    stack.add_faults(SANDBOX, &rule)
}

#[tokio::test]
async fn membership_converges_also_when_replies_are_lost() -> anyhow::Result<()> {
    let mut stack = stack().await?;
    let chat = Chat::install(&stack, 4).await?;
    once(&mut stack, "participant.add", json!({"kind": "drop_reply"}))?;
    let conversation = chat.open(3).await?;
    present(&stack, conversation, &[0, 1, 2]).await?;
    once(&mut stack, "participant.remove", json!({"kind": "drop_reply"}))?;
    ensure!(chat.leave(conversation, 1).await?);
    chat.join(conversation, 3).await?;
    present(&stack, conversation, &[0, 2, 3]).await?;
    check::settled(&stack, &Expected::recovered()).await?;
    let confirmed = "select count(*) from chat.removal where confirmed_at is not null";
    assert_eq!(stack.count(confirmed).await?, 1, "the removal has its own proof");
    assert_eq!(stack.room(conversation)?.people, people(&[0, 2, 3]));
    assert_eq!(stack.overlapping_calls()?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn what_a_list_does_not_show_yet_is_removed_nevertheless() -> anyhow::Result<()> {
    let lag = |plan: backline_promises::StackBuilder| plan.env(TWILIO, "TWILIO_LOOKUP_LAG", "1500ms");
    let mut stack = lag(Stack::builder().without_relay()).worker(TWILIO).start().await?;
    let chat = Chat::install(&stack, 2).await?;
    let hide = json!({"kind": "hide", "for": "1s"});
    let rule = json!({"match": {"provider": "twilio", "kind": "participant.add"}, "fault": hide.clone()});
    stack.add_faults(SANDBOX, &rule)?;
    let rule = json!({"match": {"provider": "twilio", "kind": "participant.remove"}, "fault": hide});
    stack.add_faults(SANDBOX, &rule)?;
    let conversation = chat.open(2).await?;
    present(&stack, conversation, &[0, 1]).await?;
    chat.leave(conversation, 1).await?;
    let removed = "select count(*) from backline.operation_history where kind = 'twilio.remove_participant' and outcome = 'succeeded'";
    eventually("the removal", async || Ok(stack.count(removed).await? == 1)).await?;
    assert_eq!(stack.room(conversation)?.people, people(&[0]), "not listed is not gone");
    chat.leave(conversation, 0).await?;
    present(&stack, conversation, &[]).await?;
    // And the other way round: the list still shows who has just been taken out and is wanted again.
    chat.join(conversation, 0).await?;
    check::settled(&stack, &Expected::default()).await?;
    assert_eq!(stack.room(conversation)?.people, people(&[0]));
    Ok(())
}

#[tokio::test]
async fn an_archived_conversation_is_closed_and_no_old_intent_opens_it() -> anyhow::Result<()> {
    let mut stack = stack().await?;
    let chat = Chat::install(&stack, 3).await?;
    let conversation = chat.open(1).await?;
    present(&stack, conversation, &[0]).await?;
    once(&mut stack, "participant.add", json!({"kind": "slow", "delay": "500ms"}))?;
    chat.join(conversation, 1).await?;
    // It is archived while somebody is being added.
    eventually("the addition to be in flight", async || {
        Ok(stack.journal()?.iter().any(|line| line["replied"] == "held"))
    })
    .await?;
    chat.archive(conversation).await?;
    for kind in ["twilio.participants", "twilio.close", "twilio.archive_close"] {
        chat.old_intent(kind, conversation).await?;
    }
    ensure!(chat.join(conversation, 2).await.is_err(), "nobody joins an archived conversation");
    check::settled(&stack, &Expected::default()).await?;
    assert_eq!(stack.room(conversation)?.states, ["active", "closed"]);
    let ended = "select count(*) from chat.conversation where state = 'archived' and ended_at is not null and attention is null";
    assert_eq!(stack.count(ended).await?, 1);
    assert_eq!(stack.overlapping_calls()?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn a_cascade_deletes_at_the_provider_by_the_sid_of_the_tombstone() -> anyhow::Result<()> {
    let mut stack = stack().await?;
    let chat = Chat::install(&stack, 2).await?;
    let (one, other) = (chat.open(2).await?, chat.open(1).await?);
    present(&stack, one, &[0, 1]).await?;
    present(&stack, other, &[0]).await?;
    check::settled(&stack, &Expected::default()).await?;
    once(&mut stack, "conversation.delete", json!({"kind": "drop_reply"}))?;
    sqlx::query("delete from chat.organization").execute(stack.pool()).await?;
    check::settled(&stack, &Expected::recovered()).await?;
    for conversation in [one, other] {
        let room = stack.room(conversation)?;
        ensure!(room.deleted, "{room:?}");
        assert_eq!(tombstone(&stack, conversation).await?, (Some(room.sid), true));
    }
    let looked_up = stack.journal()?.iter().any(|line| line["kind"] == "conversation.fetch");
    ensure!(!looked_up, "the tombstone had the SID, nobody had to look for it by name");
    Ok(())
}

#[tokio::test]
async fn a_row_that_goes_while_its_conversation_is_created_takes_the_conversation_with_it()
-> anyhow::Result<()> {
    let mut stack = stack().await?;
    let chat = Chat::install(&stack, 1).await?;
    once(&mut stack, "conversation.create", json!({"kind": "drop_reply"}))?;
    // The lookup that finds it takes long enough for the row to go.
    once(&mut stack, "conversation.fetch", json!({"kind": "slow", "delay": "500ms"}))?;
    let conversation = chat.open(1).await?;
    called(&stack, "conversation.create").await?;
    ensure!(chat.delete(conversation).await?);
    check::settled(&stack, &Expected::recovered()).await?;
    let room = stack.room(conversation)?;
    ensure!(room.deleted, "{room:?}");
    assert_eq!(tombstone(&stack, conversation).await?, (Some(room.sid), true));
    let id = "select backline.operation_id($1, 'twilio.delete', $2::text)::text";
    let deletion: String =
        sqlx::query_scalar(id).bind(chat.organization).bind(conversation).fetch_one(stack.pool()).await?;
    let of_deletion: Vec<Value> =
        stack.journal()?.into_iter().filter(|line| line["operation_id"] == *deletion).collect();
    ensure!(
        of_deletion.iter().all(|line| line["kind"] == "conversation.delete"),
        "the SID had reached the tombstone, and the deletion waited for it: {of_deletion:?}"
    );
    assert_eq!(stack.overlapping_calls()?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn an_address_that_is_bound_elsewhere_goes_to_a_person_and_keeps_nobody_else_out() -> anyhow::Result<()>
{
    let mut stack = stack().await?;
    let chat = Chat::install(&stack, 4).await?;
    let conversation = chat.open(1).await?;
    present(&stack, conversation, &[0]).await?;
    check::settled(&stack, &Expected::default()).await?;
    once(&mut stack, "participant.add", json!({"kind": "refuse", "status": 409, "code": "50416"}))?;
    let lists = |stack: &Stack| -> anyhow::Result<usize> {
        Ok(stack.journal()?.iter().filter(|line| line["kind"] == "participant.list").count())
    };
    let listed = lists(&stack)?;
    // Both are asked for before the one attempt: a request after it would try again by itself.
    let pause = "insert into backline.pause (scope, name, reason, paused_by) values ('workload', 'twilio', 'test', 'test')";
    sqlx::query(pause).execute(stack.pool()).await?;
    for n in [1, 2] {
        chat.join(conversation, n).await?;
    }
    let waits = "select count(*) from backline.operation where state = 'ready' and desired_generation = (select last_generation from backline.operation_identity i where i.id = operation.id) and not exists (select from backline.intake)";
    eventually("both requests", async || Ok(stack.count(waits).await? == 1)).await?;
    sqlx::query("delete from backline.pause").execute(stack.pool()).await?;
    let attention = async || -> anyhow::Result<Option<String>> {
        Ok(sqlx::query_scalar("select attention from chat.conversation").fetch_one(stack.pool()).await?)
    };
    eventually("a person to be asked", async || {
        Ok(attention().await?.as_deref() == Some("twilio.address_bound_elsewhere"))
    })
    .await?;
    let asks = "select count(*) from backline.operation o where state = 'manual' and failure_code = 'twilio.address_bound_elsewhere'
        and not exists (select from backline.serial_hold h where h.serial_key = o.serial_key)";
    assert_eq!(
        stack.count(asks).await?,
        1,
        "it is a person's, and whatever else is to be done does not wait for them"
    );
    assert_eq!(stack.room(conversation)?.people.len(), 2, "the other is in");
    assert_eq!(lists(&stack)? - listed, 2, "it was looked at once more");
    chat.join(conversation, 3).await?;
    check::settled(&stack, &Expected::default()).await?;
    assert_eq!((stack.room(conversation)?.people, attention().await?), (people(&[0, 1, 2, 3]), None));
    Ok(())
}

/// What is kept of a deleted conversation, and whether it was seen absent.
async fn tombstone(stack: &Stack, conversation: Uuid) -> anyhow::Result<(Option<String>, bool)> {
    let sql = "select sid, gone_at is not null from chat.conversation_tombstone where conversation = $1";
    Ok(sqlx::query_as(sql).bind(conversation).fetch_one(stack.pool()).await?)
}
