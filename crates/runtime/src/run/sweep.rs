//! Sweeps: what crashes left behind is found by the database's clock, whoever is alive.

use crate::Error;
use crate::claim::MadeReady;
use crate::finish::{Released, follow};
use crate::seeded;
use backline_outbox::run_tx;
use sqlx::PgPool;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Leases reclaimed per transaction.
const PAGE: i64 = 100;
/// Backstops look at more than what is due, so they run more rarely than reclaiming.
const BACKSTOP_EVERY: Duration = Duration::from_secs(10);
/// Partitions are made two months ahead.
const PARTITIONS_EVERY: Duration = Duration::from_secs(3600);

pub(crate) struct Sweep {
    pub(crate) pool: PgPool,
    pub(crate) kinds: Vec<String>,
    pub(crate) every: Duration,
    pub(crate) soft: CancellationToken,
}

impl Sweep {
    pub(crate) async fn run(self, kick: &Notify) {
        let mut backstop_at: Option<Instant> = None;
        let mut partitions_at: Option<Instant> = None;
        loop {
            tokio::select! {
                biased;
                () = self.soft.cancelled() => return,
                () = tokio::time::sleep(self.every) => {}
            }
            let result = async {
                let mut woke = self.reclaim().await? + self.cancel().await?;
                if backstop_at.is_none_or(|at| at.elapsed() >= BACKSTOP_EVERY) {
                    backstop_at = Some(Instant::now());
                    woke += self.backstop().await?;
                }
                if partitions_at.is_none_or(|at| at.elapsed() >= PARTITIONS_EVERY) {
                    self.partitions().await?;
                    partitions_at = Some(Instant::now());
                }
                Ok::<_, Error>(woke)
            }
            .await;
            match result {
                Ok(0) => {}
                Ok(_) => kick.notify_one(),
                Err(error) => tracing::warn!(%error, "sweep failed; trying again"),
            }
        }
    }

    /// Takes operations out of expired leases; returns how many moved.
    async fn reclaim(&self) -> Result<usize, Error> {
        let mut total = 0;
        loop {
            let snapshot = seeded::reclaim_snapshot(&self.pool).await?;
            let moved = run_tx!(&self.pool, "reclaim", |tx| async {
                seeded::before_reclaim(tx, &snapshot).await?;
                let rows = sqlx::query_file!("sql/reclaim.sql", PAGE).fetch_all(&mut *tx).await?;
                let count = rows.len();
                let (mut released, mut ready): (Vec<Released>, Vec<MadeReady>) = (Vec::new(), Vec::new());
                for row in rows {
                    released.extend(row.released_key.map(|key| (row.organization, key)));
                    if row.ready {
                        ready.push(MadeReady {
                            kind: row.kind,
                            organization: row.organization,
                            priority: row.priority,
                            due_at: row.due_at,
                        });
                    }
                }
                follow(tx, released, ready, Vec::new()).await?;
                Ok::<_, Error>(count)
            })?;
            if moved == 0 {
                return Ok(total);
            }
            total += moved;
            metrics::counter!("backline_leases_expired_operations_total").increment(moved as u64);
            tracing::warn!(operations = moved, "operations of expired leases were reclaimed");
        }
    }

    /// Before the first claim: a wish that was committed while nobody ran must not lose to it.
    pub(crate) async fn before_claims(&self) {
        if let Err(error) = self.cancel().await {
            tracing::warn!(%error, "wishes to cancel were not looked at before the first claim");
        }
    }

    /// Honors wishes to cancel.
    async fn cancel(&self) -> Result<usize, Error> {
        run_tx!(&self.pool, "cancel", |tx| async {
            seeded::before_cancel(tx).await?;
            let rows = sqlx::query_file!("sql/cancel_open.sql", PAGE).fetch_all(&mut *tx).await?;
            let count = rows.len();
            let released = rows
                .into_iter()
                .filter_map(|row| row.serial_key.map(|key| (row.organization, key)))
                .collect();
            follow(tx, released, Vec::new(), Vec::new()).await?;
            Ok::<_, Error>(count)
        })
    }

    /// Rechecks what locks and lanes should have kept true.
    async fn backstop(&self) -> Result<usize, Error> {
        run_tx!(&self.pool, "backstop", |tx| async {
            sqlx::query_file!("sql/recount_lanes.sql", &self.kinds).execute(&mut *tx).await?;
            let healed =
                sqlx::query_file_scalar!("sql/heal_lanes.sql", &self.kinds).fetch_all(&mut *tx).await?;
            let orphans =
                sqlx::query_file!("sql/orphan_waiting.sql", &self.kinds).fetch_all(&mut *tx).await?;
            let found = healed.len() + orphans.len();
            if found > 0 {
                metrics::counter!("backline_backstop_repairs_total").increment(found as u64);
            }
            let released = orphans.into_iter().map(|row| (row.organization, row.serial_key)).collect();
            follow(tx, released, Vec::new(), Vec::new()).await?;
            Ok::<_, Error>(found)
        })
    }

    /// One partition a transaction: whoever reads two parents must not meet two of its locks.
    async fn partitions(&self) -> Result<(), Error> {
        loop {
            let made = run_tx!(&self.pool, "partitions", |tx| async {
                let made = sqlx::query_file_scalar!("sql/ensure_partitions.sql").fetch_one(&mut *tx).await?;
                Ok::<_, Error>(made)
            })?;
            if made.unwrap_or_default() == 0 {
                return Ok(());
            }
        }
    }
}
