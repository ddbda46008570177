//! What could act twice or needs another person is refused with a reason, exit code 1, and nothing is written.

use crate::support::{audited, backline, kind, operation, state};
use anyhow::Result;
use sqlx::PgPool;
use uuid::Uuid;

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn what_may_have_been_applied_is_not_retried(pool: PgPool) -> Result<()> {
    kind(&pool, "test.pay", false).await?;
    for (given, word) in [("unknown", "act twice"), ("manual", "ops resolve"), ("ready", "by itself")] {
        let id = operation(&pool, given, given, None).await?;
        let answer = backline(&pool, &["ops", "retry", &id.to_string(), "--reason", "hurry"]).await?;
        assert_eq!(answer.code, Some(1), "{given}");
        assert!(answer.error().contains(word), "{given}: {}", answer.error());
        assert_eq!(state(&pool, id).await?.map(|(state, ..)| state).as_deref(), Some(given));
        assert!(audited(&pool, id).await?.is_empty());
    }
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn only_doubt_is_resolved_and_only_with_facts(pool: PgPool) -> Result<()> {
    kind(&pool, "test.pay", false).await?;
    let manual = operation(&pool, "m", "manual", None).await?.to_string();
    let dead = operation(&pool, "d", "dead", None).await?.to_string();
    let resolve = |id: &str, evidence: &str| {
        ["ops", "resolve", id, "--as", "applied", "--evidence", evidence, "--reason", "hurry"]
            .map(str::to_owned)
    };
    for (args, word) in [
        (resolve(&dead, r#"{"id": "tr_1"}"#), "only manual"),
        (resolve(&manual, "{}"), "--evidence"),
        (resolve(&manual, "tr_1"), "--evidence"),
    ] {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let answer = backline(&pool, &args).await?;
        assert_eq!(answer.code, Some(1), "{args:?}");
        assert!(answer.error().contains(word), "{}", answer.error());
    }
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn irreversible_kinds_need_another_person(pool: PgPool) -> Result<()> {
    kind(&pool, "test.pay", true).await?;
    let id = operation(&pool, "a", "dead", None).await?;
    let text = id.to_string();
    let alone = ["ops", "retry", &text, "--reason", "checked"];
    let with = |second: &'static str| [&alone[..], &["--approved-by", second]].concat();
    for args in [alone.to_vec(), with("ann")] {
        let answer = backline(&pool, &args).await?;
        assert_eq!(answer.code, Some(1));
        assert!(answer.error().contains("--approved-by"), "{}", answer.error());
    }
    assert_eq!(backline(&pool, &with("bob")).await?.code, Some(0));
    assert_eq!(state(&pool, id).await?.map(|(state, ..)| state).as_deref(), Some("ready"));
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn what_is_not_there_is_named(pool: PgPool) -> Result<()> {
    let id = Uuid::from_u128(1).to_string();
    for args in [vec!["ops", "retry", &id, "--reason", "x"], vec!["ops", "show", &id], vec!["explain", &id]] {
        let answer = backline(&pool, &args).await?;
        assert_eq!(answer.code, Some(1), "{args:?}");
        assert!(answer.error().contains(&id), "{}", answer.error());
    }
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn a_story_of_nothing_is_refused(pool: PgPool) -> Result<()> {
    for subject in ["", "  "] {
        let answer = backline(&pool, &["explain", subject]).await?;
        assert_eq!(answer.code, Some(1));
        assert!(answer.error().starts_with("the subject is empty"), "{}", answer.error());
    }
    Ok(())
}
