//! `explain` finds its subject under every name that an operator may hold in the hand.

use crate::support::{ORGANIZATION, backline, kind, operation};
use anyhow::Result;
use serde_json::json;
use sqlx::PgPool;
use uuid::Uuid;

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn an_event_leads_to_its_operation_and_a_reference_back_to_both(pool: PgPool) -> Result<()> {
    kind(&pool, "test.pay", false).await?;
    let event: Uuid =
        sqlx::query_scalar("select backline.emit_event('PaymentAuthorized', $1, $1, 'payment', 'p1', '{}')")
            .bind(ORGANIZATION)
            .fetch_one(&pool)
            .await?;
    let id = operation(&pool, "p1-transfer", "manual", None).await?;
    sqlx::query("update backline.operation set correlation_id = $2, causation_id = $2 where id = $1")
        .bind(id)
        .bind(event)
        .execute(&pool)
        .await?;
    let text = id.to_string();
    let resolve =
        ["ops", "resolve", &text, "--as", "applied", "--evidence", r#"{"id": "tr_x_1"}"#, "--reason", "seen"];
    assert_eq!(backline(&pool, &resolve).await?.code, Some(0));

    for subject in [event.to_string(), id.to_string(), "tr_x_1".to_owned(), "p1-transfer".to_owned()] {
        let story = backline(&pool, &["explain", &subject]).await?;
        let operation = &story.json["operations"][0];
        assert_eq!(operation["id"], json!(id), "{subject}: {story:?}");
        assert_eq!(operation["outcomes"][0]["output"], json!({"id": "tr_x_1"}));
        assert_eq!(operation["decisions"][0]["actor"], json!("ann"));
    }
    let story = backline(&pool, &["explain", "tr_x_1"]).await?;
    assert_eq!(story.json["event"]["entries"][0]["id"], json!(event));
    assert!(story.json["note"].as_str().is_some_and(|note| note.contains("every kept partition")));
    let missing = backline(&pool, &["explain", "tr_x"]).await?;
    assert_eq!(missing.code, Some(0), "a part of a reference is found too");
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn the_list_shows_those_that_need_a_person_first(pool: PgPool) -> Result<()> {
    kind(&pool, "test.pay", false).await?;
    for state in ["ready", "dead", "manual", "unknown"] {
        operation(&pool, state, state, None).await?;
    }
    let list = backline(&pool, &["ops", "ls"]).await?;
    let states: Vec<_> = list.json.as_array().into_iter().flatten().map(|row| row["state"].clone()).collect();
    assert_eq!(states, ["manual", "dead", "unknown", "ready"].map(|state| json!(state)));
    let only =
        backline(&pool, &["ops", "ls", "--state", "dead", "--class", "unknown", "--limit", "5"]).await?;
    assert_eq!(only.json.as_array().map(Vec::len), Some(1));
    Ok(())
}
