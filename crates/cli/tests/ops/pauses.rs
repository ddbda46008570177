//! Pauses are explained wherever somebody asks why work does not move.

use crate::support::{backline, kind, operation};
use anyhow::Result;
use serde_json::json;
use sqlx::PgPool;

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn a_pause_explains_itself_and_is_lifted(pool: PgPool) -> Result<()> {
    kind(&pool, "test.pay", false).await?;
    let id = operation(&pool, "a", "ready", None).await?.to_string();
    let pause = ["pause", "provider", "stripe:platform", "--reason", "incident 12"];
    assert_eq!(backline(&pool, &pause).await?.code, Some(0));

    let story = backline(&pool, &["explain", &id]).await?;
    let why = story.json["operations"][0]["why"].to_string();
    assert!(why.contains("incident 12") && why.contains("stripe:platform"), "{why}");
    let doctor = backline(&pool, &["doctor"]).await?;
    assert_eq!(doctor.code, Some(0), "a pause is no failure: {doctor:?}");
    assert!(doctor.json["checks"].to_string().contains("incident 12"));

    let resume = ["resume", "provider", "stripe:platform", "--reason", "over"];
    assert_eq!(backline(&pool, &resume).await?.json["was_paused_by"], json!("ann"));
    let again = backline(&pool, &resume).await?;
    assert_eq!((again.code, again.error()), (Some(1), "provider_account stripe:platform is not paused"));
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn a_name_that_nothing_has_is_not_paused(pool: PgPool) -> Result<()> {
    kind(&pool, "test.pay", false).await?;
    let answer = backline(&pool, &["pause", "workload", "payment", "--reason", "typo"]).await?;
    assert_eq!(answer.code, Some(1));
    assert!(answer.error().contains("known: payments"), "{}", answer.error());
    Ok(())
}
