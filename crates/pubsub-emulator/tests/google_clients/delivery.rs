//! Publish, receive, acknowledge, give back, expire, order.

use crate::fixture::{Fixture, message, next, subscription, take, text, topic};
use anyhow::{Context, Result};
use backline_pubsub_emulator::Config;
use google_cloud_gax::error::rpc::Code;
use google_cloud_pubsub::error::PublishError;
use std::time::Duration;

#[tokio::test]
async fn basic() -> Result<()> {
    let fixture = Fixture::start().await?;
    fixture.setup("basic", |s| s).await?;
    let sent = message("hello").set_attributes([("k", "v")]);
    let id = fixture.publish("basic", sent).await?;
    let mut stream = fixture.stream("basic");
    let (got, handler) = next(&mut stream).await?;
    assert_eq!(got.message_id, id);
    assert_eq!(text(&got), "hello");
    assert_eq!(got.attributes["k"], "v");
    assert!(got.publish_time.is_some());
    assert_eq!(handler.delivery_attempt(), None, "no attempts without a dead-letter policy");
    handler.ack();
    fixture.drained("basic").await?;
    fixture.emulator.shutdown().await
}

#[tokio::test]
async fn nack_and_drop_redeliver() -> Result<()> {
    let fixture = Fixture::start().await?;
    fixture.setup("nack", |s| s).await?;
    fixture.publish("nack", message("n")).await?;
    let mut stream = fixture.stream("nack");
    next(&mut stream).await?.1.nack();
    drop(next(&mut stream).await?.1);
    next(&mut stream).await?.1.ack();
    fixture.drained("nack").await
}

#[tokio::test]
async fn expired_leases_redeliver() -> Result<()> {
    let config = Config { ack_deadline_cap: Some(Duration::from_millis(200)), ..Config::default() };
    let fixture = Fixture::with(config).await?;
    fixture.setup("expire", |s| s).await?;
    fixture.publish("expire", message("n")).await?;
    let mut stream = fixture.stream("expire");
    let (first, handler) = next(&mut stream).await?;
    std::mem::forget(handler);
    let (second, _handler) = next(&mut stream).await?;
    assert_eq!(first.message_id, second.message_id);
    let stats = fixture.page("/stats").await?;
    assert!(stats["leases_expired"].as_u64().context("no counter")? >= 1);
    Ok(())
}

#[tokio::test]
async fn keys_keep_their_order_over_a_nack() -> Result<()> {
    let fixture = Fixture::start().await?;
    fixture.setup("ord", |s| s.set_enable_message_ordering(true)).await?;
    let publisher = fixture.publisher("ord").await?;
    for n in 0..50 {
        publisher.publish(message(&n.to_string()).set_ordering_key("k")).await?;
    }
    let mut stream = fixture.stream("ord");
    let wanted: Vec<String> = (0..50).map(|n| n.to_string()).collect();
    assert_eq!(take(&mut stream, 50).await?, wanted);
    fixture.drained("ord").await?;

    for n in 100..105 {
        publisher.publish(message(&n.to_string()).set_ordering_key("k")).await?;
    }
    let mut got = Vec::new();
    let redelivered = loop {
        let (message, handler) = next(&mut stream).await?;
        got.push(text(&message));
        let of_101: Vec<usize> = (0..got.len()).filter(|n| got[*n] == "101").collect();
        if of_101 == [got.len() - 1] {
            handler.nack();
            continue;
        }
        handler.ack();
        if let ([_, again], "104") = (of_101.as_slice(), got[got.len() - 1].as_str()) {
            break got.split_off(*again);
        }
    };
    assert_eq!(redelivered, ["101", "102", "103", "104"], "after {got:?}");
    fixture.drained("ord").await
}

#[tokio::test]
async fn flow_control_bounds_what_is_out() -> Result<()> {
    let fixture = Fixture::start().await?;
    fixture.setup("flow", |s| s).await?;
    let publisher = fixture.publisher("flow").await?;
    let sent: Vec<_> = (0..60).map(|n| publisher.publish(message(&n.to_string()))).collect();
    for id in sent {
        id.await?;
    }
    let mut stream =
        fixture.subscriber.subscribe(subscription("flow")).set_max_outstanding_messages(10).build();
    let held = next(&mut stream).await?;
    let stats = fixture.page("/stats").await?;
    assert_eq!(stats["subscriptions"][subscription("flow")]["outstanding"], 10);
    held.1.ack();
    assert_eq!(take(&mut stream, 59).await?.len(), 59);
    fixture.drained("flow").await
}

#[tokio::test]
async fn missing_resources_are_not_found() -> Result<()> {
    let fixture = Fixture::start().await?;
    let refused = fixture.publisher("nope").await?.publish(message("x")).await;
    let Err(PublishError::Rpc(error)) = refused else { anyhow::bail!("published to {}", topic("nope")) };
    assert_eq!(error.status().context("no status")?.code, Code::NotFound);
    let ended = fixture.stream("nope").next().await.context("no answer")?;
    assert_eq!(ended.err().context("opened")?.status().context("no status")?.code, Code::NotFound);
    Ok(())
}

#[tokio::test]
async fn two_streams_share_a_backlog() -> Result<()> {
    let fixture = Fixture::start().await?;
    fixture.setup("share", |s| s).await?;
    let (mut one, mut two) = (fixture.stream("share"), fixture.stream("share"));
    let publisher = fixture.publisher("share").await?;
    let receive = async {
        let (mut first, mut second) = (0, 0);
        while first + second < 100 {
            tokio::select! {
                got = next(&mut one) => { got?.1.ack(); first += 1; }
                got = next(&mut two) => { got?.1.ack(); second += 1; }
            }
        }
        anyhow::Ok((first, second))
    };
    let publish = async {
        for n in 0..100 {
            publisher.publish(message(&n.to_string())).await?;
        }
        anyhow::Ok(())
    };
    let ((first, second), ()) = tokio::try_join!(receive, publish)?;
    assert!(first > 10 && second > 10, "{first} and {second}");
    fixture.drained("share").await
}
