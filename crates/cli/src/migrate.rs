//! `backline migrate`.

use crate::Verdict;
use crate::output::{Output, table};
use anyhow::Context;
use backline_outbox::applied_migrations;
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
    let before = applied_migrations(pool).await?;
    let known = |version| before.iter().any(|row| row.version == version && row.success);
    MIGRATIONS.run(pool).await.context("migrations")?;
    let list: Vec<Applied> = MIGRATIONS
        .iter()
        .map(|migration| Applied {
            version: migration.version,
            description: migration.description.to_string(),
            now: !known(migration.version),
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
