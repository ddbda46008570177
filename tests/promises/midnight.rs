//! Partitions that come into being while others read and write: nobody meets two locks of one transaction.

use backline_promises::{Database, Server, eventually};
use sqlx::Executor;

/// As if a day had passed: the last day and the last month are missing.
const YESTERDAY: &str = "do $$ begin
    execute 'drop table backline.outbox_published_' || to_char(now() at time zone 'UTC' + interval '14 days', 'YYYYMMDD');
    execute 'drop table backline.operation_history_standard_' || to_char(now() at time zone 'UTC' + interval '2 months', 'YYYYMM');
    execute 'drop table backline.seal_' || to_char(now() at time zone 'UTC' + interval '2 months', 'YYYYMM');
end $$";

const WAITS: &str = "select count(*) from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock' and query like '%ensure_partitions%'";

async fn made(database: &Database) -> sqlx::Result<i32> {
    sqlx::query_scalar("select backline.ensure_partitions()").fetch_one(database.pool()).await
}

#[tokio::test]
async fn a_reader_of_two_tables_goes_on_while_partitions_are_made() -> anyhow::Result<()> {
    let server = Server::shared()?;
    let database = Database::create(&server).await?;
    database.pool().execute(YESTERDAY).await?;

    // It has read history and will read what was published: a sum over both, as pages and people ask for it.
    let mut reader = database.pool().acquire().await?;
    reader.execute("begin").await?;
    reader.execute("select count(*) from backline.operation_history").await?;
    assert_eq!(made(&database).await?, 1, "nobody reads what was published: its day is made");
    let waiting = tokio::spawn({
        let pool = database.pool().clone();
        async move { sqlx::query_scalar::<_, i32>("select backline.ensure_partitions()").fetch_one(&pool).await }
    });
    eventually("it waits for the reader, or has given up", async || {
        let waits: i64 = sqlx::query_scalar(WAITS).fetch_one(database.pool()).await?;
        Ok::<_, anyhow::Error>(waits > 0 || waiting.is_finished())
    })
    .await?;
    reader.execute("select count(*) from backline.outbox_published").await?;
    reader.execute("commit").await?;
    match waiting.await? {
        Ok(made) => assert_eq!(made, 1),
        // 55P03: it does not keep others waiting behind it for longer than a second.
        Err(error) => assert_eq!(error.as_database_error().and_then(|e| e.code()).as_deref(), Some("55P03")),
    }

    while made(&database).await? > 0 {}
    let missing: i64 = sqlx::query_scalar(
        "select count(*) from unnest(array[
            'outbox_published_' || to_char(now() at time zone 'UTC' + interval '14 days', 'YYYYMMDD'),
            'operation_history_standard_' || to_char(now() at time zone 'UTC' + interval '2 months', 'YYYYMM'),
            'seal_' || to_char(now() at time zone 'UTC' + interval '2 months', 'YYYYMM')]) as n(name)
         where not exists (select from pg_inherits i where i.inhrelid = to_regclass('backline.' || n.name))",
    )
    .fetch_one(database.pool())
    .await?;
    assert_eq!(missing, 0);
    Ok(())
}
