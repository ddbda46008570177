//! A worker that sleeps past its lease and wakes up as a stale holder.

use backline_dev_cluster::process::Process;
use sqlx::PgPool;
use std::time::Duration;
use tokio::time::Instant;

/// How often the database is asked.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Work comes within a second while the application pays.
const WORK_LIMIT: Duration = Duration::from_secs(5);
/// Lease, sweep and a busy machine; a worker that was stopped inside a transaction keeps its locks and is let go then.
const RECLAIM_LIMIT: Duration = Duration::from_secs(12);
/// From waking up to the refused write.
const REFUSAL_LIMIT: Duration = Duration::from_secs(4);
/// A freeze that met no work in flight proves nothing and is repeated.
const TRIES: u32 = 4;

pub(super) struct Freezer {
    pool: PgPool,
    /// Prefix of the kinds whose workers it stops.
    kinds: &'static str,
}

impl Freezer {
    pub(super) fn new(pool: PgPool, kinds: &'static str) -> Freezer {
        Freezer { pool, kinds }
    }

    /// Stops a worker that holds claims, lets the others take them over, and lets it go on.
    pub(super) async fn freeze(&self, worker: &Process) -> anyhow::Result<()> {
        let owner = format!("%:{}", worker.pid());
        let refused_before = self.refused().await;
        for _ in 0..TRIES {
            self.until(WORK_LIMIT, async || self.held(&owner).await > 0).await;
            worker.pause()?;
            if self.held(&owner).await > 0 {
                self.until(RECLAIM_LIMIT, async || self.held(&owner).await == 0).await;
            }
            worker.resume()?;
            if self.until(REFUSAL_LIMIT, async || self.refused().await > refused_before).await {
                break;
            }
        }
        Ok(())
    }

    /// Claims in leases of the process. The database may be down for a moment: then nothing is known of any.
    async fn held(&self, owner: &str) -> i64 {
        let sql = "select count(*) from backline.operation o join backline.lease l on l.id = o.lease_id where l.owner like $1";
        sqlx::query_scalar(sql).bind(owner).fetch_one(&self.pool).await.unwrap_or(0)
    }

    async fn refused(&self) -> i64 {
        let sql = "select count(*) from backline.attempt_evidence e where e.fenced and exists (
                select from backline.operation o where o.id = e.operation_id and starts_with(o.kind, $1)
                union all select from backline.operation_history h where h.id = e.operation_id and starts_with(h.kind, $1))";
        sqlx::query_scalar(sql).bind(self.kinds).fetch_one(&self.pool).await.unwrap_or(0)
    }

    async fn until(&self, limit: Duration, mut check: impl AsyncFnMut() -> bool) -> bool {
        let end = Instant::now() + limit;
        loop {
            if check().await {
                return true;
            }
            if Instant::now() >= end {
                return false;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}
