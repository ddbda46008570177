//! What is missing at the broker is found, and the advice is the one that helps.

use crate::support::{Setup, checks, declaration, declared};
use anyhow::Result;
use backline_broker::{DeadLetter, SubscriptionSpec};
use serde_json::json;
use sqlx::PgPool;
use uuid::Uuid;

#[tokio::test]
async fn dead_letters_that_nobody_keeps_are_a_failure() -> Result<()> {
    let setup = Setup::new().await?;
    for topic in ["events", "lost"] {
        setup.broker.ensure_topic(topic).await?;
    }
    let dead = DeadLetter { topic: "lost".to_owned(), max_delivery_attempts: 5 };
    let spec =
        SubscriptionSpec { dead_letter: Some(dead), ..SubscriptionSpec::new("events.reader", "events") };
    setup.broker.ensure_subscription(&spec).await?;
    let doctor = ["doctor", "--events-topic", "events"];
    let sick = checks(&setup.backline(&doctor).await?, "dead letters");
    assert_eq!((sick.len(), &sick[0]["level"]), (1, &json!("fail")), "{sick:?}");
    let found = sick[0]["found"].as_str().unwrap_or_default();
    assert!(found.contains("topic lost of events.reader has no subscription"), "{found}");

    setup.broker.ensure_subscription(&SubscriptionSpec::new("lost.kept", "lost")).await?;
    let sound = checks(&setup.backline(&doctor).await?, "dead letters");
    assert_eq!((sound.len(), &sound[0]["level"]), (1, &json!("ok")), "{sound:?}");
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn a_missing_topic_is_what_the_doctor_and_the_story_name_until_it_is_made(pool: PgPool) -> Result<()> {
    let setup = Setup::with_database(&pool).await?;
    setup.broker.ensure_topic("domain-events").await?;
    let organization = Uuid::from_u128(1);
    let sql = "select backline.emit_event('LetterApproved', $1, $1, 'letter', 'l1', '{}', topic => 'events')";
    let event: Uuid = sqlx::query_scalar(sql).bind(organization).fetch_one(&pool).await?;
    sqlx::query("update backline.outbox set occurred_at = occurred_at - interval '1 hour'")
        .execute(&pool)
        .await?;
    let explain = ["explain", &event.to_string()];

    let doctor = setup.backline(&["doctor"]).await?;
    let topics = checks(&doctor, "topics");
    assert_eq!((doctor.code, &topics[0]["level"]), (Some(1), &json!("fail")), "{doctor:?}");
    let found = topics[0]["found"].as_str().unwrap_or_default();
    assert!(found.starts_with("topic events does not exist; 1 entries wait for it"), "{found}");
    let advice = topics[0]["advice"].as_str().unwrap_or_default();
    assert!(advice.contains("backline topology apply --topic events"), "{advice}");
    let unpublished = &checks(&doctor, "unpublished")[0]["advice"];
    assert!(unpublished.as_str().is_some_and(|advice| advice.contains("missing topic")), "{unpublished}");
    let story = setup.backline(&explain).await?;
    assert_eq!((story.code, &story.json["event"]["topic"]), (Some(0), &json!("missing")), "{story:?}");

    let made = setup.backline(&["topology", "apply", "--topic", "events"]).await?;
    assert_eq!(made.code, Some(0), "{made:?}");
    let doctor = setup.backline(&["doctor"]).await?;
    let unread = &checks(&doctor, "readers")[1]["found"];
    assert!(
        unread.as_str().is_some_and(|found| found.starts_with("topic events has no subscription")),
        "{doctor:?}"
    );
    let topics = checks(&doctor, "topics");
    assert_eq!((topics.len(), &topics[0]["level"]), (1, &json!("ok")), "{topics:?}");
    let story = setup.backline(&explain).await?;
    assert_eq!(story.json["event"]["topic"], json!("there"), "{story:?}");
    Ok(())
}

#[tokio::test]
async fn the_doctor_compares_with_what_is_declared() -> Result<()> {
    let setup = Setup::new().await?;
    let file = declaration(&declared())?;
    let doctor = ["doctor", "--events-topic", "events", "--declaration", &file];
    let sick = checks(&setup.backline(&doctor).await?, "topology");
    let found = sick[0]["found"].as_str().unwrap_or_default();
    assert!(found.contains("subscription events.letters: missing"), "{sick:?}");
    assert_eq!(setup.backline(&["topology", "apply", "--declaration", &file]).await?.code, Some(0));
    let sound = setup.backline(&doctor).await?;
    assert_eq!(checks(&sound, "topology")[0]["level"], json!("ok"), "{sound:?}");
    assert_eq!(checks(&sound, "dead letters")[0]["found"], json!("kept: events.letters.dead"), "{sound:?}");
    Ok(())
}
