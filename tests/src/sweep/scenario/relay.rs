//! What the relay must not lose.

use super::{Env, open};
use crate::sweep::{Bench, must_hold};
use crate::{Action, CrashPlan, EMULATOR, Site, eventually, http};
use serde_json::json;

/// Two events of one aggregate go to two topics; one of them is missing for a while. What the other topic confirmed
/// says nothing about it.
///
/// # Errors
/// A promise is broken.
pub async fn missing_topic(env: Env<'_>) -> anyhow::Result<()> {
    let mut bench = open(env).await?;
    bench.member("relay")?.kill9()?;
    for topic in ["domain-events", "other-events"] {
        emit(&bench, topic).execute(bench.pool()).await?;
    }
    let before = published(&bench).await?;
    bench.member("relay")?.start()?;
    eventually("the event of the topic that exists", async || Ok(published(&bench).await? > before)).await?;
    let broker = bench.stack().member(EMULATOR)?.address()?;
    let path = format!("/v1/projects/{}/topics/other-events", crate::programs::PROJECT);
    http::must(broker, "PUT", &path, &json!({}))?;
    bench.settled().await?;
    must_hold(&bench).await
}

/// The relay dies on its way to the broker with an event that nobody has declared to be owed, so that nothing but the
/// relay's own record says whether it was published.
///
/// # Errors
/// A promise is broken.
pub async fn dies_before_publishing(env: Env<'_>) -> anyhow::Result<()> {
    let mut bench = open(env).await?;
    bench.member("relay")?.kill9()?;
    emit(&bench, "domain-events").execute(bench.pool()).await?;
    let site = Site { name: "broker.publish.before".to_owned(), nth: 1 };
    let plan = CrashPlan::new(site, Action::Kill, bench.parts().dir());
    bench.launch_until_fired("relay", &plan).await?;
    eventually("the process to be gone", async || Ok(bench.member("relay")?.ended()?.is_some())).await?;
    bench.member("relay")?.start()?;
    bench.settled().await?;
    must_hold(&bench).await
}

/// A transaction that drew an earlier number commits after a later one was published.
///
/// # Errors
/// A promise is broken.
pub async fn late_commit(env: Env<'_>) -> anyhow::Result<()> {
    let mut bench = open(env).await?;
    let before = published(&bench).await?;
    let mut connection = bench.pool().acquire().await?;
    sqlx::query("begin").execute(&mut *connection).await?;
    emit(&bench, "domain-events").execute(&mut *connection).await?;
    emit(&bench, "domain-events").execute(bench.pool()).await?;
    eventually("the later event", async || Ok(published(&bench).await? > before)).await?;
    sqlx::query("commit").execute(&mut *connection).await?;
    drop(connection);
    bench.settled().await?;
    must_hold(&bench).await
}

fn emit<'q>(
    bench: &Bench,
    topic: &'q str,
) -> sqlx::query::Query<'q, sqlx::Postgres, sqlx::postgres::PgArguments> {
    sqlx::query("select backline.emit_event('OrderPlaced', $1, $1, 'order', 'o1', '{}', topic => $2)")
        .bind(bench.organization())
        .bind(topic)
}

async fn published(bench: &Bench) -> anyhow::Result<i64> {
    Ok(sqlx::query_scalar("select count(*) from backline.outbox_published").fetch_one(bench.pool()).await?)
}
