//! Dead letters, retry policy, filters, exactly-once acknowledgement.

use crate::fixture::{Fixture, message, next, subscription, take, text, topic};
use anyhow::{Context, Result};
use backline_pubsub_emulator::Config;
use google_cloud_pubsub::model::{DeadLetterPolicy, RetryPolicy};
use google_cloud_pubsub::subscriber::handler::Handler;
use std::time::{Duration, Instant};

#[tokio::test]
async fn dead_letters_carry_their_source() -> Result<()> {
    let fixture = Fixture::start().await?;
    fixture.setup("dead", |s| s).await?;
    let policy = DeadLetterPolicy::new().set_dead_letter_topic(topic("dead")).set_max_delivery_attempts(5);
    fixture.setup("dlq", |s| s.set_dead_letter_policy(policy)).await?;
    let id = fixture.publish("dlq", message("poison").set_attributes([("own", "1")])).await?;
    let mut stream = fixture.stream("dlq");
    let mut attempts = Vec::new();
    for _ in 0..5 {
        let (_, handler) = next(&mut stream).await?;
        attempts.push(handler.delivery_attempt());
        handler.nack();
    }
    assert_eq!(attempts, [1, 2, 3, 4, 5].map(Some));
    let (dead, handler) = next(&mut fixture.stream("dead")).await?;
    handler.ack();
    assert_eq!(text(&dead), "poison");
    assert_ne!(dead.message_id, id);
    assert_eq!(dead.attributes["own"], "1");
    assert_eq!(dead.attributes["CloudPubSubDeadLetterSourceSubscription"], "dlq");
    assert_eq!(dead.attributes["CloudPubSubDeadLetterSourceSubscriptionProject"], "p1");
    assert_eq!(dead.attributes["CloudPubSubDeadLetterSourceDeliveryCount"], "5");
    assert!(dead.attributes.contains_key("CloudPubSubDeadLetterSourceTopicPublishTime"));
    fixture.drained("dlq").await
}

#[tokio::test]
async fn the_retry_policy_holds_a_message_back() -> Result<()> {
    let fixture = Fixture::start().await?;
    let held = google_cloud_wkt::Duration::clamp(0, 300_000_000);
    fixture.setup("retry", |s| s.set_retry_policy(RetryPolicy::new().set_minimum_backoff(held))).await?;
    let got = fixture.subscriptions.get_subscription().set_subscription(subscription("retry")).send().await?;
    let policy = got.retry_policy.context("policy lost")?;
    assert_eq!(policy.maximum_backoff.context("no default")?.seconds(), 600);
    fixture.publish("retry", message("n")).await?;
    let mut stream = fixture.stream("retry");
    let (_, handler) = next(&mut stream).await?;
    let nacked = Instant::now();
    handler.nack();
    next(&mut stream).await?.1.ack();
    assert!(nacked.elapsed() >= Duration::from_millis(300));
    fixture.drained("retry").await
}

#[tokio::test]
async fn filters_drop_what_does_not_match() -> Result<()> {
    let fixture = Fixture::start().await?;
    fixture.setup("filter", |s| s.set_filter("attributes.kind = \"sms\"")).await?;
    for (data, kind) in [("a", "email"), ("b", "sms"), ("c", "push")] {
        fixture.publish("filter", message(data).set_attributes([("kind", kind)])).await?;
    }
    assert_eq!(take(&mut fixture.stream("filter"), 1).await?, ["b"]);
    fixture.drained("filter").await
}

#[tokio::test]
async fn exactly_once_confirms_acknowledgements() -> Result<()> {
    let fixture = Fixture::start().await?;
    fixture.setup("eod", |s| s.set_enable_exactly_once_delivery(true)).await?;
    fixture.publish("eod", message("n")).await?;
    let (_, handler) = next(&mut fixture.stream("eod")).await?;
    let Handler::ExactlyOnce(handler) = handler else { anyhow::bail!("at-least-once handler") };
    handler.confirmed_ack().await?;
    fixture.drained("eod").await
}

#[tokio::test]
async fn exactly_once_refuses_a_lease_that_is_over() -> Result<()> {
    let config = Config { ack_deadline_cap: Some(Duration::from_millis(50)), ..Config::default() };
    let fixture = Fixture::with(config).await?;
    fixture.setup("late", |s| s.set_enable_exactly_once_delivery(true)).await?;
    fixture.publish("late", message("n")).await?;
    let mut stream = fixture.stream("late");
    let (_, first) = next(&mut stream).await?;
    let (_, _second) = next(&mut stream).await?;
    let Handler::ExactlyOnce(first) = first else { anyhow::bail!("at-least-once handler") };
    assert!(first.confirmed_ack().await.is_err());
    Ok(())
}
