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
async fn a_second_pause_keeps_the_first_reason_and_says_so(pool: PgPool) -> Result<()> {
    kind(&pool, "test.pay", false).await?;
    let breaker = "insert into backline.pause (scope, name, reason, paused_by) values ('provider_account', 'stripe:platform', 'blocked', 'breaker')";
    sqlx::query(breaker).execute(&pool).await?;
    let pause = |reason: &'static str, actor: &'static str| {
        ["pause", "provider", "stripe:platform", "--reason", reason, "--actor", actor]
    };
    // A person's replaces the breaker's, or a worker's start would lift it.
    let first = backline(&pool, &pause("incident 12", "ann")).await?;
    assert_eq!((first.code, &first.json["already"]), (Some(0), &json!(false)));
    let second = backline(&pool, &pause("key rotation", "bob")).await?;
    assert_eq!(second.code, Some(0), "it is paused, as was asked for");
    let told = [&second.json["already"], &second.json["reason"], &second.json["paused_by"]];
    assert_eq!(told, [&json!(true), &json!("incident 12"), &json!("ann")]);
    let kept: (String, String) =
        sqlx::query_as("select reason, paused_by from backline.pause").fetch_one(&pool).await?;
    assert_eq!(kept, ("incident 12".to_owned(), "ann".to_owned()));
    let audited = "select string_agg(actor || ': ' || reason, ', ' order by at) from backline.audit where action = 'pause'";
    let audited: Option<String> = sqlx::query_scalar(audited).fetch_one(&pool).await?;
    assert_eq!(audited.as_deref(), Some("ann: incident 12, bob: key rotation"));
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

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn what_met_a_refused_account_is_due_when_the_account_is_resumed(pool: PgPool) -> Result<()> {
    kind(&pool, "test.pay", false).await?;
    let met = operation(&pool, "a", "ready", None).await?;
    let other = operation(&pool, "b", "ready", None).await?;
    sqlx::query("update backline.operation set due_at = now() + interval '1 hour', failure_class = case id when $1 then 'blocked' else 'transient' end")
        .bind(met)
        .execute(&pool)
        .await?;
    sqlx::query("update backline.ready_lane set next_due = now() + interval '1 hour', mark_due = now() + interval '1 hour'")
        .execute(&pool)
        .await?;
    backline(&pool, &["pause", "provider", "stripe:platform", "--reason", "revoked key"]).await?;
    backline(&pool, &["resume", "provider", "stripe:platform", "--reason", "new key"]).await?;
    let due = "select (select due_at <= now() from backline.operation where id = $1), (select due_at <= now() from backline.operation where id = $2),
        (select bool_and(next_due <= now() and mark_due <= now()) from backline.ready_lane)";
    let due: (bool, bool, bool) = sqlx::query_as(due).bind(met).bind(other).fetch_one(&pool).await?;
    assert_eq!(due, (true, false, true));
    Ok(())
}
