//! "published" means that the broker confirmed that event id: neither a relay's death nor a refusing broker changes it.

use backline_promises::{EMULATOR, RELAY, Stack, eventually};
use serde_json::json;
use uuid::Uuid;

#[tokio::test]
async fn every_event_committed_around_a_killed_relay_is_confirmed_and_recorded_once() -> anyhow::Result<()> {
    let mut stack = Stack::builder().start().await?;
    let organization = Uuid::now_v7();
    let mut ids = Vec::new();
    for n in 0..20 {
        ids.push(stack.emit("OrderPlaced", organization, &format!("o{}", n % 3), json!({"n": n})).await?);
        if n == 10 {
            stack.member(RELAY)?.kill9()?;
        }
    }
    assert!(stack.count("select count(*) from backline.outbox").await? > 0, "nobody relays: entries wait");
    stack.member(RELAY)?.start()?;
    eventually("an empty outbox", async || {
        Ok(stack.count("select count(*) from backline.outbox").await? == 0)
    })
    .await?;

    assert_eq!(stack.count("select count(*) from backline.outbox_published").await?, 20);
    assert_eq!(stack.count("select count(distinct id) from backline.outbox_published").await?, 20);
    let accepted = serde_json::to_string(&stack.published()?)?;
    for id in ids {
        assert!(
            accepted.contains(&id.to_string()),
            "{id} is recorded as published, and the broker never saw it"
        );
    }
    Ok(())
}

#[tokio::test]
async fn a_broker_that_comes_back_receives_what_was_committed_without_it() -> anyhow::Result<()> {
    let mut stack = Stack::builder().start().await?;
    stack.member(EMULATOR)?.kill9()?;
    let id = stack.emit("OrderPlaced", Uuid::now_v7(), "o1", json!({})).await?;
    assert_eq!(stack.count("select count(*) from backline.outbox").await?, 1);
    stack.member(EMULATOR)?.start()?;
    eventually("the confirmation", async || {
        Ok(stack.count("select count(*) from backline.outbox_published").await? == 1)
    })
    .await?;
    assert!(serde_json::to_string(&stack.published()?)?.contains(&id.to_string()));
    Ok(())
}
