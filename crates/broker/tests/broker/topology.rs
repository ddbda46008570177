//! Declarations against what exists, field by field.

use crate::support::Setup;
use anyhow::{Context, Result};
use backline_broker::{Broker, Change, DeadLetter, Difference, Mended, SubscriptionSpec, Topology};
use google_cloud_auth::credentials::anonymous;
use google_cloud_pubsub::client::SubscriptionAdmin;
use google_cloud_pubsub::model::{PushConfig, Subscription};
use std::time::Duration;

fn declared() -> Topology {
    let spec = SubscriptionSpec::of_consumer("events", "letters");
    Topology { subscriptions: vec![spec], ..Topology::default() }
}

async fn mend(broker: &Broker, wanted: &Topology) -> Result<Vec<Mended>> {
    let mut done = Vec::new();
    for difference in broker.compare(wanted).await? {
        done.push(broker.mend(wanted, &difference).await?);
    }
    Ok(done)
}

fn fields(difference: &Difference) -> Vec<(&'static str, Change)> {
    difference.fields.iter().map(|one| (one.field, one.change)).collect()
}

#[tokio::test]
async fn what_a_program_makes_for_itself_is_what_it_declares() -> Result<()> {
    let setup = Setup::empty().await?;
    setup.broker.ensure(&declared()).await?;
    assert_eq!(setup.broker.compare(&declared()).await?, []);
    // Again, which leaves everything as it is.
    setup.broker.ensure(&declared()).await?;
    assert_eq!(mend(&setup.broker, &declared()).await?, []);
    Ok(())
}

#[tokio::test]
async fn everything_missing_is_made_dead_letters_first() -> Result<()> {
    let setup = Setup::empty().await?;
    let done = mend(&setup.broker, &declared()).await?;
    let ids: Vec<_> = done.iter().filter(|one| one.created).map(|one| one.id.as_str()).collect();
    assert_eq!(ids, ["events", "events.letters.dead", "events.letters.dead.kept", "events.letters"]);
    assert_eq!(setup.broker.compare(&declared()).await?, []);
    let dead = DeadLetter { topic: "events.letters.dead".to_owned(), max_delivery_attempts: 100 };
    assert_eq!(setup.broker.dead_letters_of("events.letters").await?, Some(dead));
    Ok(())
}

#[tokio::test]
async fn every_field_that_can_be_updated_is_updated_alone() -> Result<()> {
    type Set = fn(&mut SubscriptionSpec);
    let cases: [(&str, Set); 4] = [
        ("ack_deadline", |spec| spec.ack_deadline = Duration::from_secs(20)),
        ("backoff", |spec| spec.max_backoff = Duration::from_secs(600)),
        ("retention", |spec| spec.retention = Duration::from_secs(3600)),
        ("dead_letter", |spec| spec.dead_letter = None),
    ];
    let setup = Setup::empty().await?;
    setup.broker.ensure(&declared()).await?;
    for (field, set) in cases {
        let mut wanted = declared();
        set(&mut wanted.subscriptions[0]);
        let differences = setup.broker.compare(&wanted).await?;
        let one = differences.first().context("no difference")?;
        assert_eq!((differences.len(), fields(one)), (1, vec![(field, Change::InPlace)]));
        for wanted in [wanted, declared()] {
            let done = mend(&setup.broker, &wanted).await?;
            assert!(done.iter().all(|one| !one.created && one.refused.is_empty()), "{done:?}");
            assert_eq!(setup.broker.compare(&wanted).await?, [], "{field}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn what_is_fixed_at_creation_is_left_and_the_rest_is_updated() -> Result<()> {
    let setup = Setup::empty().await?;
    setup.broker.ensure_topic("events").await?;
    setup.broker.ensure_topic("other").await?;
    let other = SubscriptionSpec {
        ordered: false,
        filter: Some("attributes:x".to_owned()),
        ack_deadline: Duration::from_secs(20),
        ..SubscriptionSpec::new("events.letters", "other")
    };
    setup.broker.ensure_subscription(&other).await?;
    let done = mend(&setup.broker, &declared()).await?;
    let last = done.last().context("nothing done")?;
    let refused: Vec<_> = last.refused.iter().map(|one| one.field).collect();
    let updated: Vec<_> = last.updated.iter().map(|one| one.field).collect();
    assert_eq!((refused, updated), (vec!["topic", "filter", "ordered"], vec!["ack_deadline", "dead_letter"]));
    let left = setup.broker.compare(&declared()).await?;
    let changes = [("topic", Change::Recreate), ("filter", Change::Recreate), ("ordered", Change::Recreate)];
    assert_eq!(left.iter().map(fields).collect::<Vec<_>>(), [changes]);
    Ok(())
}

#[tokio::test]
async fn what_somebody_made_by_hand_is_brought_to_what_every_subscription_of_ours_has() -> Result<()> {
    let setup = Setup::empty().await?;
    setup.broker.ensure_topic("events").await?;
    let endpoint = format!("http://{}", setup.emulator.addr);
    let admin = SubscriptionAdmin::builder()
        .with_endpoint(endpoint)
        .with_credentials(anonymous::Builder::new().build())
        .build()
        .await?;
    let by_hand = Subscription::new()
        .set_name("projects/project/subscriptions/events.letters")
        .set_topic("projects/project/topics/events")
        .set_enable_message_ordering(true)
        .set_enable_exactly_once_delivery(true)
        .set_push_config(PushConfig::new().set_push_endpoint("https://example.com/push"));
    admin.create_subscription().with_request(by_hand).send().await?;
    let differences = setup.broker.compare(&declared()).await?;
    let last = differences.last().context("no difference")?;
    let seen: Vec<_> = last.fields.iter().map(|one| (one.field, one.actual.as_str())).collect();
    let expected = [
        ("push", "https://example.com/push"),
        ("exactly_once", "true"),
        ("ack_deadline", "10s"),
        ("backoff", "none: redelivery is immediate"),
        ("expires", "when idle for 31d"),
        ("dead_letter", "none"),
    ];
    assert_eq!(seen, expected);
    mend(&setup.broker, &declared()).await?;
    assert_eq!(setup.broker.compare(&declared()).await?, []);
    Ok(())
}
