//! Recording the broker's answer.

use crate::hand_over::HandedOver;
use backline_outbox::drain::{DrainError, LaneHold, mark_published, park};
use backon::{ExponentialBuilder, Retryable};
use sqlx::PgPool;
use std::time::Duration;

/// Moves what was confirmed and parks what was refused.
pub(crate) async fn settle(
    pool: &PgPool,
    hold: LaneHold,
    lease: Duration,
    done: &HandedOver,
) -> Result<(), DrainError> {
    if !done.confirmed.is_empty() {
        // A lock time-out or a full pool is no reason to publish again what the broker has.
        let again = ExponentialBuilder::default().with_min_delay(Duration::from_millis(50)).with_max_times(3);
        let result = (|| mark_published(pool, hold, &done.confirmed, lease))
            .retry(again)
            .when(|error| matches!(error, DrainError::Database(_)))
            .await;
        let moved = result.inspect_err(|_| {
            // The broker has them and the outbox does not know: whoever holds the lane next publishes them again.
            let again = u64::try_from(done.confirmed.len()).unwrap_or(u64::MAX);
            metrics::counter!("backline_outbox_republished_total", "reason" => "unrecorded").increment(again);
        })?;
        metrics::counter!("backline_outbox_published_total").increment(moved);
    }
    if !done.refused.is_empty() {
        let parked = park(pool, hold, &done.refused).await?;
        for entry in &done.refused {
            tracing::error!(lane = hold.lane, seq = entry.seq, reason = entry.reason, "outbox entry parked");
        }
        metrics::counter!("backline_outbox_parked_total", "reason" => "refused").increment(parked);
    }
    Ok(())
}
