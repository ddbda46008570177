//! The intake watermark: a worker with a large ready backlog lets the broker keep the rest, for a while.

use backline_broker::Delivery;
use sqlx::PgPool;
use std::time::Duration;
use time::OffsetDateTime;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How often the backlog is counted.
const COUNT_EVERY: Duration = Duration::from_secs(1);
/// A quarter of the broker's default retention of seven days (facts: `message_retention_duration`): past it the broker
/// is no safer than our tables, and everything is accepted, with an alert.
const BROKER_PATIENCE: time::Duration = time::Duration::hours(42);

/// Slows intake above a number of ready operations.
#[derive(Debug)]
pub(crate) struct Watermark {
    pub(crate) kinds: Vec<String>,
    pub(crate) limit: i64,
    counted_at: Option<Instant>,
}

impl Watermark {
    pub(crate) fn new(kinds: Vec<String>, limit: i64) -> Self {
        Self { kinds, limit, counted_at: None }
    }

    /// Waits while the backlog is over the mark, unless `oldest` has waited too long at the broker.
    pub(crate) async fn hold_back(
        &mut self,
        pool: &PgPool,
        oldest: Option<&Delivery>,
        soft: &CancellationToken,
    ) {
        let Some(oldest) = oldest else { return };
        if self.counted_at.is_some_and(|at| at.elapsed() < COUNT_EVERY) {
            return;
        }
        loop {
            self.counted_at = Some(Instant::now());
            let over = sqlx::query_file_scalar!("sql/backlog_over.sql", &self.kinds, self.limit)
                .fetch_one(pool)
                .await;
            metrics::gauge!("backline_intake_held_back").set(if matches!(over, Ok(true)) {
                1.0
            } else {
                0.0
            });
            // A database that cannot count is met again, and reported, by the accept that follows.
            if !matches!(over, Ok(true)) || soft.is_cancelled() {
                return;
            }
            if oldest.publish_time.is_some_and(|at| since(at) > BROKER_PATIENCE) {
                metrics::counter!("backline_intake_forced_total").increment(1);
                tracing::error!(
                    "deliveries wait at the broker for too long; accepting them above the watermark"
                );
                return;
            }
            tokio::select! {
                () = soft.cancelled() => return,
                () = tokio::time::sleep(COUNT_EVERY) => {}
            }
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "compared with the broker's clock over hours; decides nothing durable"
)]
fn since(at: OffsetDateTime) -> time::Duration {
    OffsetDateTime::now_utc() - at
}
