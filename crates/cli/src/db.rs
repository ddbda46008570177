//! The operator's connection.

use anyhow::Context;
use backline_outbox::{AccessError, database_options, reach};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use std::time::Duration;

/// A person waits at the other end.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// Connects and proves it with a round trip.
pub(crate) async fn connect(url: Option<&str>) -> anyhow::Result<PgPool> {
    let url = url.context("DATABASE_URL (or --database-url) is not set")?;
    let options = database_options(url)?.application_name("backline-cli");
    reach(&options, CONNECT_LIMIT).await?;
    Ok(PgPoolOptions::new().max_connections(2).acquire_timeout(CONNECT_LIMIT).connect_lazy_with(options))
}

/// Whether relays and workers get through with what they send at the start of a session unless they are told to poll.
pub(crate) async fn reach_as_service(pool: &PgPool) -> Result<(), AccessError> {
    let options = pool.connect_options().as_ref().clone();
    reach(&options.options([("idle_in_transaction_session_timeout", "30000")]), CONNECT_LIMIT).await
}
