//! G10: replay keeps identity.
//!
//! Predicate: whatever is delivered, requested or retried again carries the identity it had; it meets its seal, its
//! operation or its outcome, and makes no second one.
//!
//! The races: an event replayed as a new message long after it was finished, a request repeated with other inputs, and a
//! relay that offers an event again although it was sealed.

use backline_promises::check::{self, Expected};
use backline_promises::{EMULATOR, SCRIPTED, Stack, eventually, http};
use serde_json::{Value, json};
use uuid::Uuid;

#[tokio::test]
async fn a_finished_event_that_arrives_again_as_a_new_message_is_recognized() -> anyhow::Result<()> {
    let mut stack = Stack::builder().worker(SCRIPTED).start().await?;
    let payload = json!({"key": "k", "order": {}});
    let id = stack.emit("ThingOrdered", Uuid::now_v7(), "a", payload).await?;
    check::settled(&stack, &Expected { committed: vec![id], ..Expected::default() }).await?;
    let sql = "select translate(encode(convert_to(payload::text, 'UTF8'), 'base64'), E'\\n', '') from backline.outbox_published where id = $1";
    let data: String = sqlx::query_scalar(sql).bind(id).fetch_one(stack.pool()).await?;
    let published = stack.published()?;
    let original = published.iter().find(|line| line["attributes"]["ce-id"] == id.to_string());
    let attributes = original.map(|line| line["attributes"].clone()).unwrap_or_default();
    let again: Vec<Value> = (0..5).map(|_| json!({"data": data, "attributes": attributes})).collect();
    let path = "/v1/projects/backline-promises/topics/domain-events:publish";
    http::must(stack.member(EMULATOR)?.address()?, "POST", path, &json!({"messages": again}))?;
    eventually("five repeated deliveries", async || {
        Ok(stack.metric(SCRIPTED, "backline_deliveries_repeated_total")? >= 1.0)
    })
    .await?;
    check::settled(&stack, &Expected::recovered()).await?;
    assert_eq!(stack.effects().calls().len(), 1);
    assert_eq!(stack.count("select count(*) from backline.operation_history").await?, 1);
    Ok(())
}

#[tokio::test]
async fn a_request_repeated_with_other_inputs_is_the_first_one() -> anyhow::Result<()> {
    let stack = Stack::builder().worker(SCRIPTED).start().await?;
    let organization = Uuid::now_v7();
    let first = stack.enqueue("effect.keyed", organization, "k", json!({"value": 1})).await?;
    stack.comes_to(first, "succeeded").await?;
    let second = stack.enqueue("effect.keyed", organization, "k", json!({"value": 2})).await?;
    assert_eq!(first, second, "asking twice is asking once");
    check::settled(&stack, &Expected { committed: vec![first], ..Expected::default() }).await?;
    let calls = stack.effects().calls_of(first);
    assert_eq!(calls.iter().map(|call| &call.value).collect::<Vec<_>>(), [&json!(1)]);
    assert_eq!(stack.state(first).await?, "succeeded");
    Ok(())
}

#[tokio::test]
async fn an_event_that_is_offered_again_is_the_same_event() -> anyhow::Result<()> {
    let stack = Stack::builder().worker(SCRIPTED).start().await?;
    let payload = json!({"key": "k", "order": {}});
    let id = stack.emit("ThingOrdered", Uuid::now_v7(), "a", payload).await?;
    check::settled(&stack, &Expected::default()).await?;
    // Its seal is lost: the sweep compares, offers it again, and the operation's identity absorbs it.
    let sql = "delete from backline.seal; update backline.required_consumer set checked_to = '-infinity'";
    sqlx::raw_sql(sql).execute(stack.pool()).await?;
    eventually("the event to be sealed again", async || {
        Ok(stack.count("select count(*) from backline.seal").await? == 1)
    })
    .await?;
    check::settled(&stack, &Expected { committed: vec![id], ..Expected::recovered() }).await?;
    assert_eq!(stack.effects().calls().len(), 1);
    Ok(())
}
