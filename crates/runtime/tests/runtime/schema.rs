//! A worker starts only on a schema that has what it was built with.

use crate::handlers::Gated;
use crate::support::{Running, SOON, config, enqueue};
use anyhow::{Result, ensure};
use backline_runtime::transition::State;
use backline_runtime::{Command, Status, Workload};
use sqlx::PgPool;
use std::time::Duration;

const LEASE: Duration = Duration::from_secs(30);

async fn newest(pool: &PgPool) -> Result<i64> {
    Ok(sqlx::query_scalar("select max(version) from backline.migration").fetch_one(pool).await?)
}

/// Starts a worker that must refuse; its words. Nothing was declared.
async fn refusal(pool: &PgPool) -> Result<String> {
    let workload = Workload::new("test", config(pool, LEASE)?).command(Gated::new(1).0);
    let text = Running::start(workload).refusal().await?;
    let kinds: i64 = sqlx::query_scalar("select count(*) from backline.kind").fetch_one(pool).await?;
    ensure!(kinds == 0, "a kind was declared");
    Ok(text)
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn an_older_schema_is_refused_with_both_versions_and_the_remedy(pool: PgPool) -> Result<()> {
    let newest = newest(&pool).await?;
    sqlx::query("delete from backline.migration where version = $1").bind(newest).execute(&pool).await?;
    let text = refusal(&pool).await?;
    let wanted =
        format!("has version {}, this build needs version {newest}: run `backline migrate`", newest - 1);
    ensure!(text.contains(&wanted), "{text}");
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn a_schema_without_a_record_or_of_another_history_is_refused(pool: PgPool) -> Result<()> {
    let newest = newest(&pool).await?;
    let other = "update backline.migration set checksum = '\\x00' where version = $1";
    sqlx::query(other).bind(newest).execute(&pool).await?;
    let text = refusal(&pool).await?;
    ensure!(
        text.contains(&format!("version {newest} of the database is not the one of this build")),
        "{text}"
    );

    sqlx::query("drop table backline.migration").execute(&pool).await?;
    let text = refusal(&pool).await?;
    ensure!(text.contains("no applied migrations") && text.contains("`backline migrate`"), "{text}");
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn a_newer_schema_is_worked_on(pool: PgPool) -> Result<()> {
    let next = "insert into backline.migration (version, description, success, checksum, execution_time)
        select max(version) + 1, 'next', true, '', 0 from backline.migration";
    sqlx::query(next).execute(&pool).await?;
    let workload = Workload::new("test", config(&pool, LEASE)?).command(Gated::new(1).0);
    let eager = workload.eager();
    let running = Running::start(workload);
    let operation = enqueue(&pool, Gated::KIND, "newer").await?;
    eager.committed();
    let status = eager.outcome(operation, SOON).await;
    ensure!(matches!(status, Status::Ended { outcome: State::Succeeded, .. }), "{status:?}");
    running.stop().await
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn the_roles_of_relay_and_worker_may_read_the_record(pool: PgPool) -> Result<()> {
    for role in ["backline_worker", "backline_relay"] {
        let sql = "select has_table_privilege($1, 'backline.migration', 'select')";
        let may: bool = sqlx::query_scalar(sql).bind(role).fetch_one(&pool).await?;
        ensure!(may, "{role}");
    }
    Ok(())
}
