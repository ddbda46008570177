//! The operator's connection.

use anyhow::Context;
use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use std::time::Duration;

/// A person waits at the other end.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// Connects and proves it with a round trip.
pub(crate) async fn connect(url: Option<&str>) -> anyhow::Result<PgPool> {
    let url = url.context("DATABASE_URL (or --database-url) is not set")?;
    let options: PgConnectOptions = url.parse().context("DATABASE_URL is not a PostgreSQL connection URL")?;
    let pool = PgPoolOptions::new()
        .max_connections(2)
        .acquire_timeout(CONNECT_LIMIT)
        .connect_lazy_with(options.application_name("backline-cli"));
    sqlx::query("select 1").execute(&pool).await.context("DATABASE_URL: PostgreSQL cannot be reached")?;
    Ok(pool)
}
