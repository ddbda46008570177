//! Nothing is lost behind the broker: published events are compared with the seals of their required consumers.
//!
//! A subscription created late, expired or moved by seek, and dead letters that were dropped, all look the same from
//! here: no seal. The event is offered again, with the same id and bytes, until it is sealed or parked.

use super::DrainError;
use crate::run_tx;
use sqlx::PgPool;

/// What one sweep did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reoffered {
    /// Events put back into the outbox.
    pub offered: u64,
    /// Events parked because they had been offered often enough.
    pub parked: u64,
}

/// Compares what was published with what was sealed, page by page, for every required consumer.
///
/// `page` bounds one transaction; `max_offers` is how often an event is offered before it is parked.
///
/// # Errors
/// The database's error; what was swept before it stays swept.
pub async fn reoffer_unsealed(pool: &PgPool, page: i64, max_offers: i32) -> Result<Reoffered, DrainError> {
    let mut total = Reoffered::default();
    let all = run_tx!(pool, "relay.required", |tx| async {
        Ok::<_, DrainError>(sqlx::query_file!("sql/required_consumers.sql").fetch_all(tx).await?)
    })?;
    for required in all {
        loop {
            let (looked_at, done) =
                sweep_page(pool, &required.event_type, &required.consumer, page, max_offers).await?;
            total.offered += done.offered;
            total.parked += done.parked;
            if looked_at < page {
                break;
            }
        }
    }
    Ok(total)
}

async fn sweep_page(
    pool: &PgPool,
    event_type: &str,
    consumer: &str,
    page: i64,
    max_offers: i32,
) -> Result<(i64, Reoffered), DrainError> {
    run_tx!(pool, "relay.reoffer", |tx| async {
        let due =
            sqlx::query_file!("sql/reoffer_due.sql", event_type, consumer).fetch_optional(&mut *tx).await?;
        let Some(due) = due else { return Ok::<_, DrainError>((0, Reoffered::default())) };
        let query = sqlx::query_file!(
            "sql/reoffer_page.sql",
            event_type,
            consumer,
            due.from,
            due.reoffer_after,
            page,
            max_offers
        );
        let done = query.fetch_one(&mut *tx).await?;
        if let Some(checked_to) = done.checked_to {
            sqlx::query_file!("sql/reoffer_checked.sql", event_type, consumer, checked_to)
                .execute(&mut *tx)
                .await?;
        }
        let swept = Reoffered { offered: done.offered.unsigned_abs(), parked: done.parked.unsigned_abs() };
        Ok((done.looked_at, swept))
    })
}
