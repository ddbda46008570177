//! Each decision does what it says, and leaves the traces that a worker's transition would.

use crate::support::{ORGANIZATION, audited, backline, kind, lane_due, operation, state};
use anyhow::Result;
use serde_json::{Value, json};
use sqlx::PgPool;
use uuid::Uuid;

fn audit(action: &str) -> Vec<(String, String, String)> {
    vec![(action.to_owned(), "ann".to_owned(), "checked".to_owned())]
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn a_dead_operation_is_ready_again_with_its_id_and_no_attempts(pool: PgPool) -> Result<()> {
    kind(&pool, "test.pay", false).await?;
    let id = operation(&pool, "a", "dead", None).await?;
    let answer = backline(&pool, &["ops", "retry", &id.to_string(), "--reason", "checked"]).await?;
    assert_eq!((answer.code, &answer.json["to"]), (Some(0), &json!("ready")), "{answer:?}");
    assert_eq!(state(&pool, id).await?, Some(("ready".to_owned(), 1, 0)));
    assert!(lane_due(&pool).await?, "a ready operation in a lane that is not due would sleep");
    assert_eq!(audited(&pool, id).await?, audit("retry"));
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn a_preview_changes_nothing(pool: PgPool) -> Result<()> {
    kind(&pool, "test.pay", false).await?;
    let id = operation(&pool, "a", "dead", None).await?;
    let answer =
        backline(&pool, &["ops", "retry", &id.to_string(), "--reason", "checked", "--dry-run"]).await?;
    assert_eq!((answer.code, &answer.json["dry_run"]), (Some(0), &json!(true)));
    assert_eq!(state(&pool, id).await?, Some(("dead".to_owned(), 1, 3)));
    assert!(audited(&pool, id).await?.is_empty());
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn applied_is_an_outcome_with_the_evidence_and_the_key_goes_on(pool: PgPool) -> Result<()> {
    kind(&pool, "test.pay", false).await?;
    let id = operation(&pool, "a", "manual", Some("payee")).await?;
    let next = operation(&pool, "b", "waiting", Some("payee")).await?;
    let args = [
        "ops",
        "resolve",
        &id.to_string(),
        "--as",
        "applied",
        "--evidence",
        r#"{"id": "tr_9"}"#,
        "--reason",
        "checked",
    ];
    let answer = backline(&pool, &args).await?;
    assert_eq!((answer.code, &answer.json["to"]), (Some(0), &json!("succeeded")), "{answer:?}");
    assert_eq!(state(&pool, id).await?, None);
    let outcome: (String, Value) =
        sqlx::query_as("select outcome::text, output from backline.operation_history where id = $1")
            .bind(id)
            .fetch_one(&pool)
            .await?;
    assert_eq!(outcome, ("succeeded".to_owned(), json!({"id": "tr_9"})));
    assert_eq!(state(&pool, next).await?.map(|(state, ..)| state), Some("ready".to_owned()));
    assert!(lane_due(&pool).await?);
    assert_eq!(holder(&pool).await?, None, "the next takes the key with its claim");
    assert_eq!(audited(&pool, id).await?, audit("resolve"));
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn not_applied_is_the_next_submission(pool: PgPool) -> Result<()> {
    kind(&pool, "test.pay", false).await?;
    let id = operation(&pool, "a", "manual", Some("payee")).await?;
    let args = [
        "ops",
        "resolve",
        &id.to_string(),
        "--as",
        "not-applied",
        "--evidence",
        r#"{"list": []}"#,
        "--reason",
        "checked",
    ];
    let answer = backline(&pool, &args).await?;
    assert_eq!((answer.code, &answer.json["to"]), (Some(0), &json!("ready")), "{answer:?}");
    assert_eq!(state(&pool, id).await?, Some(("ready".to_owned(), 2, 0)));
    let clean: bool = sqlx::query_scalar(
        "select not may_have_left and first_submitted_at is null and repeatable and lookups = 0 from backline.operation where id = $1",
    )
    .bind(id)
    .fetch_one(&pool)
    .await?;
    assert!(clean, "a new submission carries no doubt of the old one");
    assert_eq!(holder(&pool).await?, None);
    assert!(lane_due(&pool).await?);
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn a_discarded_operation_has_an_outcome_and_never_runs(pool: PgPool) -> Result<()> {
    kind(&pool, "test.pay", false).await?;
    let id = operation(&pool, "a", "dead", None).await?;
    let answer = backline(&pool, &["ops", "discard", &id.to_string(), "--reason", "checked"]).await?;
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let outcome: String =
        sqlx::query_scalar("select outcome::text from backline.operation_history where id = $1")
            .bind(id)
            .fetch_one(&pool)
            .await?;
    assert_eq!((outcome.as_str(), state(&pool, id).await?), ("discarded", None));
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn a_cancel_is_a_wish_for_the_runtime(pool: PgPool) -> Result<()> {
    kind(&pool, "test.pay", true).await?;
    let id = operation(&pool, "a", "ready", None).await?;
    let answer = backline(&pool, &["ops", "cancel", &id.to_string(), "--reason", "checked"]).await?;
    assert_eq!((answer.code, &answer.json["to"]), (Some(0), &json!("cancelled")), "{answer:?}");
    let wishes: i64 =
        sqlx::query_scalar("select count(*) from backline.cancel_request where operation_id = $1")
            .bind(id)
            .fetch_one(&pool)
            .await?;
    assert_eq!(wishes, 1);
    assert_eq!(state(&pool, id).await?.map(|(state, ..)| state), Some("ready".to_owned()));
    assert_eq!(audited(&pool, id).await?, audit("cancel"));
    Ok(())
}

async fn holder(pool: &PgPool) -> Result<Option<Uuid>> {
    let sql =
        "select operation_id from backline.serial_hold where organization = $1 and serial_key = 'payee'";
    Ok(sqlx::query_scalar(sql).bind(ORGANIZATION).fetch_optional(pool).await?)
}
