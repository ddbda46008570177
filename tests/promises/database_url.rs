//! `DATABASE_URL` that leads nowhere: a wrong setting ends a start with a reason, an outage is waited out, and neither
//! shows the password.

use anyhow::ensure;
use backline_promises::check::{self, Expected};
use backline_promises::{RELAY, SCRIPTED, Stack, backline, eventually, http};
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;
use uuid::Uuid;

/// Must appear nowhere.
const PASSWORD: &str = "canary-of-the-database";

#[tokio::test]
async fn a_wrong_password_user_or_database_ends_every_start_with_a_reason() -> anyhow::Result<()> {
    let mut stack = Stack::builder().own_server().worker(SCRIPTED).start().await?;
    for program in [RELAY, SCRIPTED] {
        stack.member(program)?.kill9()?;
    }
    // Everybody but one is let in without a password.
    let file: String = sqlx::query_scalar("show hba_file").fetch_one(stack.pool()).await?;
    let sql = format!(
        "create role ann login password 'another';
         copy (values ('host all ann all scram-sha-256'), ('host all all all trust'), ('local all all trust')) to '{file}';
         select pg_reload_conf()"
    );
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(stack.pool()).await?;
    let rules = "select count(*) from pg_hba_file_rules where auth_method = 'scram-sha-256'";
    ensure!(stack.count(rules).await? == 1, "the server does not ask for a password");

    let port = stack.server().port();
    let right = stack.database_url();
    let (_, name) = right.rsplit_once('/').unwrap_or_default();
    for (url, said, remedy) in [
        (
            format!("postgres://ann:{PASSWORD}@127.0.0.1:{port}/{name}"),
            "password authentication failed",
            "right user and password",
        ),
        (
            format!("postgres://nobody:{PASSWORD}@127.0.0.1:{port}/{name}"),
            "role \"nobody\" does not exist",
            "right user and password",
        ),
        (format!("postgres://bob:{PASSWORD}@127.0.0.1:{port}/none"), "does not exist", "DATABASE_URL"),
        (format!("127.0.0.1:{port}/{PASSWORD}"), "DATABASE_URL is not a PostgreSQL connection URL", ""),
    ] {
        let place = if remedy.is_empty() {
            String::new()
        } else {
            format!("DATABASE_URL (127.0.0.1:{port}, database ")
        };
        let mut answers = Vec::new();
        for program in [RELAY, SCRIPTED] {
            let (code, text) = stack.member(program)?.refusal(&[("DATABASE_URL", &url)])?;
            answers.push((program, Some(code), text));
        }
        for command in ["migrate", "doctor"] {
            let answer = backline(&url, &[], &[command])?;
            answers.push((command, answer.code, answer.seen()));
        }
        for (program, code, text) in answers {
            ensure!(code == Some(1), "{program} ended with {code:?}: {text}");
            for words in [said, remedy, &place] {
                ensure!(text.contains(words), "{program} does not say {words:?}: {text}");
            }
            ensure!(!text.contains(PASSWORD), "{program} shows the password: {text}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_server_that_is_away_at_the_start_is_waited_for_and_named() -> anyhow::Result<()> {
    let mut stack = Stack::builder().behind_proxy().worker(SCRIPTED).start().await?;
    for program in [RELAY, SCRIPTED] {
        stack.member(program)?.kill9()?;
    }
    stack.proxy()?.unplug();
    let place = format!("DATABASE_URL (127.0.0.1:{}, database ", stack.proxy()?.port());
    for program in [RELAY, SCRIPTED] {
        stack.member(program)?.launch()?;
        eventually("three tries", async || {
            let log = stack.member(program)?.log()?;
            Ok(log.matches("waiting for the database").count() >= 3)
        })
        .await?;
        let log = stack.member(program)?.log()?;
        ensure!(log.contains(&place), "{program}: {log}");
        let address = stack.member(program)?.address()?;
        let (live, _) = http::call(address, "GET", "/livez", &Value::Null)?;
        let (ready, why) = http::call(address, "GET", "/readyz", &Value::Null)?;
        ensure!((live, ready) == (200, 503), "{program} is {live} and {ready}");
        ensure!(program == RELAY || why.contains(&format!("start: {place}")), "{program}: {why}");
    }
    let id = stack.enqueue("effect.keyed", Uuid::now_v7(), "k", json!({})).await?;
    stack.proxy()?.heal();
    stack.comes_to(id, "succeeded").await?;
    check::settled(&stack, &Expected { committed: vec![id], ..Expected::default() }).await?;
    // Who is stopped while it waits ends as it does at rest.
    for program in [RELAY, SCRIPTED] {
        stack.member(program)?.kill9()?;
        stack.proxy()?.unplug();
        stack.member(program)?.launch()?;
        let before = stack.member(program)?.log()?.matches("waiting for the database").count();
        eventually("a try", async || {
            Ok(stack.member(program)?.log()?.matches("waiting for the database").count() > before)
        })
        .await?;
        let code = stack.member(program)?.stop(std::time::Duration::from_secs(10))?;
        ensure!(code == 0, "{program} ended with {code}");
    }
    Ok(())
}
