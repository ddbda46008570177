//! Administration over REST: create, read, change, delete, seek, snapshots, refusals.

use crate::fixture::{Fixture, PROJECT, message, next, subscription, take, topic};
use anyhow::{Context, Result};
use google_cloud_gax::error::rpc::Code;
use google_cloud_pubsub::model::{DeadLetterPolicy, RetryPolicy, Subscription};
use google_cloud_wkt::{Duration, FieldMask, Timestamp};

#[tokio::test]
async fn resources_come_and_go() -> Result<()> {
    let fixture = Fixture::start().await?;
    fixture.setup("dead", |s| s).await?;
    let policy = DeadLetterPolicy::new().set_dead_letter_topic(topic("dead")).set_max_delivery_attempts(7);
    let retry = RetryPolicy::new().set_minimum_backoff(Duration::clamp(10, 0));
    fixture
        .setup("adm", |s| {
            s.set_enable_message_ordering(true).set_dead_letter_policy(policy).set_retry_policy(retry)
        })
        .await?;
    let admin = &fixture.subscriptions;
    let got = admin.get_subscription().set_subscription(subscription("adm")).send().await?;
    assert!(got.enable_message_ordering);
    assert_eq!(got.dead_letter_policy.context("policy lost")?.max_delivery_attempts, 7);
    let changed = Subscription::new().set_name(subscription("adm")).set_ack_deadline_seconds(30);
    let got = admin
        .update_subscription()
        .set_subscription(changed)
        .set_update_mask(FieldMask::default().set_paths(["ack_deadline_seconds"]))
        .send()
        .await?;
    assert_eq!(got.ack_deadline_seconds, 30);
    assert!(got.retry_policy.is_some(), "only the mask's field changes");
    fixture.topics.get_topic().set_topic(topic("adm")).send().await?;
    let listed = fixture.topics.list_topics().set_project(PROJECT).set_page_size(1).send().await?;
    assert_eq!(listed.topics.len(), 1);
    let rest = fixture.topics.list_topics().set_project(PROJECT).set_page_token(listed.next_page_token);
    assert_eq!(rest.send().await?.topics.len(), 1);
    let listed = admin.list_subscriptions().set_project(PROJECT).send().await?;
    assert_eq!(listed.subscriptions.len(), 2);
    admin.delete_subscription().set_subscription(subscription("adm")).send().await?;
    fixture.topics.delete_topic().set_topic(topic("adm")).send().await?;
    let gone = admin.get_subscription().set_subscription(subscription("adm")).send().await;
    assert_eq!(gone.err().and_then(|e| e.status().map(|s| s.code)), Some(Code::NotFound));
    Ok(())
}

#[tokio::test]
async fn refusals() -> Result<()> {
    let fixture = Fixture::start().await?;
    fixture.setup("taken", |s| s).await?;
    let code = |e: google_cloud_pubsub::Error| e.status().map(|s| s.code);
    let again = fixture.topics.create_topic().set_name(topic("taken")).send().await;
    assert_eq!(again.err().and_then(code), Some(Code::AlreadyExists));
    let short = fixture.topics.create_topic().set_name(topic("xx")).send().await;
    assert_eq!(short.err().and_then(code), Some(Code::InvalidArgument));
    let bad = Subscription::new().set_name(subscription("bad")).set_topic(topic("taken"));
    for wanted in [bad.clone().set_ack_deadline_seconds(9), bad.clone().set_filter("nonsense")] {
        let refused = fixture.subscriptions.create_subscription().with_request(wanted).send().await;
        assert_eq!(refused.err().and_then(code), Some(Code::InvalidArgument));
    }
    let policy = DeadLetterPolicy::new().set_dead_letter_topic(topic("gone"));
    let wanted = bad.set_dead_letter_policy(policy);
    let refused = fixture.subscriptions.create_subscription().with_request(wanted).send().await;
    assert_eq!(refused.err().and_then(code), Some(Code::NotFound));
    Ok(())
}

#[tokio::test]
async fn seek_replays_and_skips() -> Result<()> {
    let fixture = Fixture::start().await?;
    fixture.setup("seek", |s| s.set_retain_acked_messages(true)).await?;
    fixture.publish("seek", message("old")).await?;
    let mut stream = fixture.stream("seek");
    take(&mut stream, 1).await?;
    fixture.drained("seek").await?;
    let snapshot = format!("{PROJECT}/snapshots/empty");
    let admin = &fixture.subscriptions;
    admin.create_snapshot().set_name(&snapshot).set_subscription(subscription("seek")).send().await?;

    let past = Timestamp::clamp(1_700_000_000, 0);
    admin.seek().set_subscription(subscription("seek")).set_time(past).send().await?;
    assert_eq!(take(&mut stream, 1).await?, ["old"]);
    fixture.publish("seek", message("new")).await?;
    let (_, held) = next(&mut stream).await?;
    let future = Timestamp::clamp(4_000_000_000, 0);
    admin.seek().set_subscription(subscription("seek")).set_time(future).send().await?;
    fixture.drained("seek").await?;
    held.nack();

    admin.seek().set_subscription(subscription("seek")).set_snapshot(&snapshot).send().await?;
    assert_eq!(take(&mut stream, 1).await?, ["new"], "the snapshot collects what came after it");
    fixture.drained("seek").await?;
    admin.delete_snapshot().set_snapshot(&snapshot).send().await?;
    Ok(())
}
