//! Every fault fires, is seen by the client, and is counted.

use crate::fixture::{Fixture, message, next, subscription, take, text, topic};
use anyhow::{Context, Result};
use backline_pubsub_emulator::{
    Config, Delay, DeliveryAttempts, DropAcks, Duplicate, FaultPlan, PublishFault, PublishMode, Reorder,
    StreamFault,
};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

fn publish_fault(mode: PublishMode, times: u64) -> FaultPlan {
    let rule = PublishFault {
        mode,
        code: "UNAVAILABLE".into(),
        times: Some(times),
        topic: None,
        ordering_key: None,
    };
    FaultPlan { publish: vec![rule], ..FaultPlan::default() }
}

#[tokio::test]
async fn publishes_fail_before_or_after_acceptance() -> Result<()> {
    let fixture = Fixture::start().await?;
    fixture.setup("pub", |s| s).await?;
    let publisher = fixture.publisher("pub").await?;
    fixture.emulator.set_faults(publish_fault(PublishMode::Refuse, 1))?;
    assert!(publisher.publish(message("refused")).await.is_err());
    publisher.publish(message("first")).await?;
    fixture.emulator.set_faults(publish_fault(PublishMode::AcceptThenFail, 1))?;
    assert!(publisher.publish(message("second")).await.is_err());
    assert_eq!(take(&mut fixture.stream("pub"), 2).await?, ["first", "second"]);
    assert_eq!(fixture.emulator.fault_fired("publish_refused"), 1);
    assert_eq!(fixture.emulator.fault_fired("publish_accepted_then_failed"), 1);
    let log = fixture.text_page(&format!("/log?topic={}", topic("pub"))).await?;
    assert_eq!(log.lines().count(), 2, "the log has what was accepted");
    Ok(())
}

#[tokio::test]
async fn duplicates_and_reordering() -> Result<()> {
    let fixture = Fixture::start().await?;
    fixture.setup("dup", |s| s).await?;
    let duplicate = Duplicate { probability: 1.0, copies: 1, new_message_id: false, topic: None };
    fixture.emulator.set_faults(FaultPlan { duplicate: Some(duplicate), ..FaultPlan::default() })?;
    fixture.publish("dup", message("n")).await?;
    let mut stream = fixture.stream("dup");
    let (first, one) = next(&mut stream).await?;
    let (second, two) = next(&mut stream).await?;
    assert_eq!(first.message_id, second.message_id);
    one.ack();
    two.ack();
    fixture.drained("dup").await?;

    let reorder = Some(Reorder { window: 50 });
    fixture.emulator.set_faults(FaultPlan { reorder, ..FaultPlan::default() })?;
    fixture.setup("mix", |s| s).await?;
    let publisher = fixture.publisher("mix").await?;
    let wanted: Vec<String> = (0..100).map(|n| format!("{n:03}")).collect();
    let sent: Vec<_> = wanted.iter().map(|n| publisher.publish(message(n))).collect();
    for id in sent {
        id.await?;
    }
    let got = take(&mut fixture.stream("mix"), 100).await?;
    assert_ne!(got, wanted);
    let set: BTreeSet<_> = got.into_iter().collect();
    assert_eq!(set.len(), 100);
    assert!(fixture.emulator.fault_fired("reordered") > 0);
    Ok(())
}

#[tokio::test]
async fn lost_acknowledgements_redeliver() -> Result<()> {
    let config = Config { ack_deadline_cap: Some(Duration::from_millis(200)), ..Config::default() };
    let fixture = Fixture::with(config).await?;
    fixture.setup("drop", |s| s).await?;
    fixture.publish("drop", message("n")).await?;
    let drop_acks = Some(DropAcks { every: 1, subscription: None });
    fixture.emulator.set_faults(FaultPlan { drop_acks, ..FaultPlan::default() })?;
    let mut stream = fixture.stream("drop");
    next(&mut stream).await?.1.ack();
    let (_, handler) = next(&mut stream).await?;
    assert!(fixture.emulator.fault_fired("acks_dropped") >= 1);
    fixture.emulator.set_faults(FaultPlan::default())?;
    handler.ack();
    while fixture.page("/stats").await?["subscriptions"][subscription("drop")]["unacked"] != 0 {
        // The client flushes acknowledgements every 100 ms; a lease may end first.
        if let Ok(got) = tokio::time::timeout(Duration::from_millis(300), stream.next()).await {
            got.context("stream ended")??.1.ack();
        }
    }
    Ok(())
}

#[tokio::test]
async fn streams_end_and_the_client_comes_back() -> Result<()> {
    let fixture = Fixture::start().await?;
    fixture.setup("cut", |s| s).await?;
    let mut stream = fixture.stream("cut");
    fixture.publish("cut", message("before")).await?;
    assert_eq!(take(&mut stream, 1).await?, ["before"]);
    for end in ["UNAVAILABLE", "INTERNAL", "RESET"] {
        let rule = StreamFault { end: end.into(), times: Some(1), after_messages: 0, subscription: None };
        fixture.emulator.set_faults(FaultPlan { streams: vec![rule], ..FaultPlan::default() })?;
        let fired = fixture.emulator.fault_fired("streams_ended");
        let (received, published) = tokio::join!(next(&mut stream), fixture.publish("cut", message(end)));
        published?;
        let (got, handler) = received?;
        assert_eq!(text(&got), end);
        handler.ack();
        assert!(fixture.emulator.fault_fired("streams_ended") >= fired);
    }
    assert_eq!(fixture.emulator.fault_fired("streams_ended"), 3);
    fixture.drained("cut").await
}

#[tokio::test]
async fn scripted_attempts_and_http_control() -> Result<()> {
    let fixture = Fixture::start().await?;
    fixture.setup("att", |s| s).await?;
    let delivery_attempts = Some(DeliveryAttempts { values: vec![9, 0], subscription: None });
    let plan = FaultPlan { delivery_attempts, ..FaultPlan::default() };
    let url = format!("{}/faults", fixture.emulator.endpoint());
    let client = &fixture.http;
    client.put(&url).body(serde_json::to_string(&plan)?).send().await?.error_for_status()?;
    fixture.publish("att", message("n")).await?;
    let mut stream = fixture.stream("att");
    let (_, handler) = next(&mut stream).await?;
    assert_eq!(handler.delivery_attempt(), Some(9));
    handler.nack();
    let (_, handler) = next(&mut stream).await?;
    assert_eq!(handler.delivery_attempt(), None);
    handler.ack();
    let shown = fixture.page("/faults").await?;
    assert_eq!(shown["fired"]["delivery_attempts_scripted"], 2);
    let refused = client.put(&url).body(r#"{"streams":[{"end":"NONSENSE"}]}"#).send().await?;
    assert_eq!(refused.status().as_u16(), 400);
    client.delete(&url).send().await?.error_for_status()?;
    assert!(fixture.page("/faults").await?["plan"]["delivery_attempts"].is_null());
    Ok(())
}

#[tokio::test]
async fn delays_hold_messages_back() -> Result<()> {
    let fixture = Fixture::start().await?;
    fixture.setup("late", |s| s).await?;
    let delay = Some(Delay { millis: 300, probability: 1.0, topic: Some(topic("late")) });
    fixture.emulator.set_faults(FaultPlan { delay, ..FaultPlan::default() })?;
    let published = Instant::now();
    fixture.publish("late", message("n")).await?;
    take(&mut fixture.stream("late"), 1).await?;
    assert!(published.elapsed() >= Duration::from_millis(300));
    assert_eq!(fixture.emulator.fault_fired("delayed"), 1);
    Ok(())
}
