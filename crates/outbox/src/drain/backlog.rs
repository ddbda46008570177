//! How much waits, for gauges.

use super::DrainError;
use crate::run_tx;
use sqlx::PgPool;

/// The outbox from outside.
#[derive(Clone, Copy, Debug)]
pub struct Backlog {
    /// Lanes with something to publish.
    pub lanes: i64,
    /// Age in seconds of the oldest entry that waits, by the database's clock; 0 when none does.
    pub oldest_seconds: f64,
    /// Entries set aside.
    pub parked: i64,
}

/// Looks at the outbox without counting it.
///
/// # Errors
/// The database's error.
pub async fn backlog(pool: &PgPool) -> Result<Backlog, DrainError> {
    run_tx!(pool, "relay.backlog", |tx| async {
        let waiting = sqlx::query_file!("sql/backlog.sql").fetch_one(&mut *tx).await?;
        let parked = sqlx::query_file_scalar!("sql/parked_count.sql").fetch_one(&mut *tx).await?;
        Ok::<_, DrainError>(Backlog { lanes: waiting.lanes, oldest_seconds: waiting.oldest_seconds, parked })
    })
}
