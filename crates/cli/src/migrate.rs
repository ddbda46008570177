//! `backline migrate`.

use crate::Verdict;
use crate::output::{Output, table};
use anyhow::Context;
use serde::Serialize;
use sqlx::PgPool;

pub(crate) use backline_outbox::MIGRATIONS;

#[derive(Debug, Serialize)]
struct Applied {
    version: i64,
    description: String,
    /// By this run; false for those that were there.
    now: bool,
}

pub(crate) async fn run(pool: &PgPool, output: &Output) -> anyhow::Result<Verdict> {
    let before = applied(pool).await?;
    MIGRATIONS.run(pool).await.context("migrations")?;
    let list: Vec<Applied> = MIGRATIONS
        .iter()
        .map(|migration| Applied {
            version: migration.version,
            description: migration.description.to_string(),
            now: !before.contains(&migration.version),
        })
        .collect();
    output.answer(&list, || {
        let rows = list.iter().map(|one| {
            let when = if one.now { "applied now" } else { "was applied" };
            vec![one.version.to_string(), one.description.clone(), when.to_owned()]
        });
        table(&["version", "description", "state"], rows)
    })?;
    Ok(Verdict::Good)
}

/// Versions that the database has, none before the first migration.
pub(crate) async fn applied(pool: &PgPool) -> sqlx::Result<Vec<i64>> {
    let exists: bool =
        sqlx::query_scalar("select to_regclass('backline.migration') is not null").fetch_one(pool).await?;
    if !exists {
        return Ok(Vec::new());
    }
    sqlx::query_scalar("select version from backline.migration where success order by version")
        .fetch_all(pool)
        .await
}
