//! Field cases of conversations: what is too new to be seen, and what is gone and nobody knows by whom.

use anyhow::Context;
use backline_promises::check::{self, Expected};
use backline_promises::{Chat, SANDBOX, Stack, TWILIO, eventually, http};
use serde_json::{Value, json};
use uuid::Uuid;

async fn stack() -> anyhow::Result<(Stack, Chat)> {
    let stack = Stack::builder().without_relay().worker(TWILIO).start().await?;
    let chat = Chat::install(&stack, 2).await?;
    Ok((stack, chat))
}

/// Every later creation stays invisible to everybody for so long.
fn hide(stack: &mut Stack, span: &str) -> anyhow::Result<()> {
    let rule = json!({"match": {"provider": "twilio", "kind": "conversation.create"}, "fault": {"kind": "hide", "for": span}});
    stack.add_faults(SANDBOX, &rule)
}

async fn operation(stack: &Stack, chat: &Chat, kind: &str, conversation: Uuid) -> anyhow::Result<Uuid> {
    let sql = "select backline.operation_id($1, $2, $3::text)";
    let query = sqlx::query_scalar(sql).bind(chat.organization).bind(kind).bind(conversation);
    Ok(query.fetch_one(stack.pool()).await?)
}

async fn output(stack: &Stack, operation: Uuid) -> anyhow::Result<Value> {
    let sql = "select output from backline.operation_status($1)";
    let output: Option<Value> = sqlx::query_scalar(sql).bind(operation).fetch_one(stack.pool()).await?;
    output.context("the outcome has no output")
}

fn deletions(stack: &Stack) -> anyhow::Result<Vec<Value>> {
    Ok(stack.journal()?.into_iter().filter(|line| line["kind"] == "conversation.delete").collect())
}

const IN_DOUBT: &str =
    "select count(*) from backline.attempt_evidence where operation_id = $1 and class = 'unknown'";
const INVISIBLE: &str = "select count(*) from backline.attempt_evidence
    where operation_id = $1 and class = 'transient' and code = 'twilio.conversation_invisible'";

/// Case 85, first run: <https://github.com/twilio/twilio-node/issues/936>
#[tokio::test]
async fn a_conversation_that_is_not_shown_yet_is_waited_for() -> anyhow::Result<()> {
    let (mut stack, chat) = stack().await?;
    hide(&mut stack, "1s")?;
    let conversation = chat.open(1).await?;
    let participants = operation(&stack, &chat, "twilio.participants", conversation).await?;
    eventually("the first look", async || Ok(stack.number(INVISIBLE, participants).await? > 0)).await?;
    assert_eq!(stack.room(conversation)?.people.len(), 0, "the wait is no success of anything");
    check::settled(&stack, &Expected::recovered()).await?;
    assert_eq!(stack.room(conversation)?.people.len(), 1);
    assert_eq!(stack.state(participants).await?, "succeeded");
    check::conversations(&stack).await
}

/// Case 85, second run.
#[tokio::test]
async fn a_conversation_that_is_never_shown_goes_to_a_person_with_a_reason_and_is_never_a_success()
-> anyhow::Result<()> {
    let (mut stack, chat) = stack().await?;
    hide(&mut stack, "1h")?;
    let conversation = chat.open(1).await?;
    let participants = operation(&stack, &chat, "twilio.participants", conversation).await?;
    stack.comes_to(participants, "manual").await?;
    check::settled(&stack, &Expected { stuck: 1, ..Expected::recovered() }).await?;
    assert!(stack.number(INVISIBLE, participants).await? > 0, "it was waited for, for a bounded time");
    let sql = "select failure_code from backline.operation where id = $1";
    let code: Option<String> = sqlx::query_scalar(sql).bind(participants).fetch_one(stack.pool()).await?;
    assert_eq!(code.as_deref(), Some("twilio.conversation_missing"));
    let sql = "select attention from chat.conversation where id = $1";
    let attention: Option<String> =
        sqlx::query_scalar(sql).bind(conversation).fetch_one(stack.pool()).await?;
    assert_eq!(attention.as_deref(), Some("twilio.conversation_missing"));
    let succeeded = "select count(*) from backline.operation_history where id = $1 and outcome = 'succeeded'";
    assert_eq!(stack.number(succeeded, participants).await?, 0);
    assert_eq!(stack.room(conversation)?.people.len(), 0);
    Ok(())
}

/// Case 87, first half: <https://github.com/golemcloud/golem/pull/3764>
#[tokio::test]
async fn a_deletion_whose_reply_was_lost_succeeds_and_its_doubt_stays_on_record() -> anyhow::Result<()> {
    let (mut stack, chat) = stack().await?;
    let conversation = chat.open(1).await?;
    check::settled(&stack, &Expected::default()).await?;
    let rule = json!({"match": {"provider": "twilio", "kind": "conversation.delete"}, "times": 1, "fault": {"kind": "drop_reply"}});
    stack.add_faults(SANDBOX, &rule)?;
    chat.delete(conversation).await?;
    let deletion = operation(&stack, &chat, "twilio.delete", conversation).await?;
    check::settled(&stack, &Expected::recovered()).await?;
    assert_eq!(stack.state(deletion).await?, "succeeded");
    let calls = deletions(&stack)?;
    assert_eq!(calls.iter().filter(|call| call["applied"] == true).count(), 1);
    assert_eq!((&calls[0]["replied"], &calls[1]["replied"]), (&json!("dropped"), &json!(404)));
    assert!(stack.number(IN_DOUBT, deletion).await? > 0, "absent after an attempt in doubt");
    check::conversations(&stack).await
}

/// Case 87, second half: a conversation that Twilio never had, and one that somebody else has deleted.
#[tokio::test]
async fn a_deletion_of_what_is_not_there_ends_and_no_doubt_is_on_record() -> anyhow::Result<()> {
    let (mut stack, chat) = stack().await?;
    // Deleted by somebody else, with their own tools.
    let taken = chat.open(0).await?;
    check::settled(&stack, &Expected::default()).await?;
    let sid = stack.room(taken)?.sid;
    let sandbox = stack.member(SANDBOX)?.address()?;
    let gone = json!({"action": "conversation", "id": sid, "becomes": "deleted"});
    http::must(sandbox, "POST", "/control", &gone)?;
    chat.delete(taken).await?;
    // Never created: its row is gone before anybody begins.
    stack.member(TWILIO)?.kill9()?;
    let never = chat.open(0).await?;
    chat.delete(never).await?;
    stack.member(TWILIO)?.start()?;
    check::settled(&stack, &Expected::default()).await?;
    let creation = operation(&stack, &chat, "twilio.create", never).await?;
    assert_eq!(stack.state(creation).await?, "obsolete");
    for (conversation, had) in [(taken, json!(sid)), (never, json!(null))] {
        let deletion = operation(&stack, &chat, "twilio.delete", conversation).await?;
        assert_eq!(stack.state(deletion).await?, "succeeded");
        assert_eq!(output(&stack, deletion).await?["sid"], had);
        assert_eq!(stack.number(IN_DOUBT, deletion).await?, 0, "this worker removed nothing");
    }
    assert!(deletions(&stack)?.iter().all(|call| call["applied"] != true));
    check::conversations(&stack).await
}
