//! From an empty database to one the doctor has nothing to say against.

use crate::support::backline;
use anyhow::Result;
use serde_json::{Value, json};
use sqlx::PgPool;

#[sqlx::test(migrations = false)]
async fn an_empty_database_is_diagnosed_migrated_once_and_sound(pool: PgPool) -> Result<()> {
    let sick = backline(&pool, &["doctor"]).await?;
    assert_eq!(sick.code, Some(1));
    let migrations = check(&sick.json, "migrations");
    assert_eq!(
        (&migrations["level"], &migrations["advice"]),
        (&json!("fail"), &json!("run `backline migrate`"))
    );

    for now in [true, false] {
        let answer = backline(&pool, &["migrate"]).await?;
        assert_eq!(answer.code, Some(0), "{answer:?}");
        let versions = answer.json.as_array().cloned().unwrap_or_default();
        assert!(!versions.is_empty() && versions.iter().all(|one| one["now"] == json!(now)), "{versions:?}");
    }
    let sound = backline(&pool, &["doctor"]).await?;
    assert_eq!((sound.code, &sound.json["failed"]), (Some(0), &json!(0)), "{sound:?}");
    assert_eq!(check(&sound.json, "kinds")["level"], json!("warn"), "no worker has started yet");
    Ok(())
}

#[sqlx::test(migrations = false)]
async fn a_migration_of_another_history_is_named_and_never_called_applied(pool: PgPool) -> Result<()> {
    backline(&pool, &["migrate"]).await?;
    sqlx::query("update backline.migration set checksum = 'else' where version = 2").execute(&pool).await?;
    let answer = backline(&pool, &["doctor"]).await?;
    let migrations = check(&answer.json, "migrations");
    assert_eq!((answer.code, &migrations["level"]), (Some(1), &json!("fail")));
    let found = migrations["found"].as_str().unwrap_or_default();
    assert!(found.contains("version 2 of the database is not the one of this build"), "{found}");
    Ok(())
}

#[sqlx::test(migrations = false)]
async fn a_broker_that_does_not_answer_is_a_failure_with_its_address(pool: PgPool) -> Result<()> {
    backline(&pool, &["migrate"]).await?;
    // Port 1 is reserved and nothing listens there.
    let answer = backline(&pool, &["doctor", "--pubsub-emulator-host", "127.0.0.1:1"]).await?;
    let pubsub = check(&answer.json, "pubsub");
    assert_eq!((answer.code, &pubsub["level"]), (Some(1), &json!("fail")));
    assert!(pubsub["found"].as_str().is_some_and(|found| found.starts_with("127.0.0.1:1: ")), "{pubsub}");
    Ok(())
}

fn check(answer: &Value, name: &str) -> Value {
    let checks = answer["checks"].as_array().into_iter().flatten();
    checks.into_iter().find(|check| check["name"] == json!(name)).cloned().unwrap_or_default()
}
