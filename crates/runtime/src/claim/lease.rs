//! Leases: one row per claim batch, renewed by one task on a connection of its own.

use crate::Error;
use backline_failure::{Deadline, LeaseEnd};
use backline_outbox::run_tx;
use sqlx::PgPool;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// One claim's share in its batch's lease.
#[derive(Debug)]
pub(crate) struct LeaseShare {
    state: Arc<LeaseState>,
    ended: bool,
}

impl Drop for LeaseShare {
    /// A claim that vanishes without an end must not keep its lease alive: the lease runs out and the sweep reclaims.
    fn drop(&mut self) {
        if !self.ended {
            self.state.open.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

#[derive(Debug)]
struct LeaseState {
    id: i64,
    /// Claims not ended yet.
    open: AtomicUsize,
    /// Reclaimed by somebody.
    lost: AtomicBool,
    /// Each local end was computed before the statement that set the database's was sent.
    end: LeaseEnd,
}

impl LeaseShare {
    /// Local end of the lease, which renewals move on.
    pub(crate) fn lease_end(&self) -> &LeaseEnd {
        &self.state.end
    }

    /// Gives the share back; returns the lease's id when it was the last one, so that its row can go.
    pub(crate) fn end(mut self) -> Option<i64> {
        self.ended = true;
        (self.state.open.fetch_sub(1, Ordering::AcqRel) == 1).then_some(self.state.id)
    }
}

/// Keeps this process's leases alive.
#[derive(Debug, Clone)]
pub(crate) struct LeaseKeeper {
    live: Arc<Mutex<HashMap<i64, Arc<LeaseState>>>>,
    pub(crate) duration: Duration,
    pub(crate) process: Uuid,
}

impl LeaseKeeper {
    pub(crate) fn new(duration: Duration, process: Uuid) -> Self {
        Self { live: Arc::default(), duration, process }
    }

    /// Registers a lease taken by a statement that was sent when `until` was computed, and shares it out.
    pub(crate) fn adopt(&self, id: i64, claims: usize, until: Deadline) -> Vec<LeaseShare> {
        let state = Arc::new(LeaseState {
            id,
            open: AtomicUsize::new(claims),
            lost: AtomicBool::new(false),
            end: LeaseEnd::new(until),
        });
        let shares = (0..claims).map(|_| LeaseShare { state: Arc::clone(&state), ended: false }).collect();
        self.lock().insert(id, state);
        shares
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<i64, Arc<LeaseState>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Renews until `stop`, on `pool` (one reserved connection: heartbeats never queue behind work).
    pub(crate) async fn keep(self, pool: PgPool, stop: CancellationToken) {
        let every = self.duration / 3;
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = tokio::time::sleep(every) => {}
            }
            if let Err(error) = self.renew(&pool).await {
                metrics::counter!("backline_lease_renewal_failures_total").increment(1);
                tracing::warn!(%error, "leases were not renewed; attempts stop calling providers before they end");
            }
        }
    }

    async fn renew(&self, pool: &PgPool) -> Result<(), Error> {
        let ids: Vec<i64> = {
            let mut live = self.lock();
            live.retain(|_, state| {
                state.open.load(Ordering::Acquire) > 0 && !state.lost.load(Ordering::Acquire)
            });
            live.keys().copied().collect()
        };
        if ids.is_empty() {
            return Ok(());
        }
        let until = Deadline::after(self.duration);
        let millis = i64::try_from(self.duration.as_millis()).unwrap_or(i64::MAX);
        let kept: Vec<i64> = run_tx!(pool, "renew_lease", |tx| async {
            let kept = sqlx::query_file_scalar!("sql/renew_leases.sql", &ids, millis, self.process)
                .fetch_all(&mut *tx)
                .await?;
            Ok::<_, Error>(kept)
        })?;
        let live = self.lock();
        for id in &ids {
            let Some(state) = live.get(id) else { continue };
            if kept.contains(id) {
                state.end.renew(until);
            } else if state.open.load(Ordering::Acquire) > 0 {
                state.lost.store(true, Ordering::Release);
                state.end.lose();
                metrics::counter!("backline_leases_lost_total").increment(1);
                tracing::warn!(
                    lease = id,
                    "lease was reclaimed; its attempts call nobody any more and their results will be refused"
                );
            }
        }
        Ok(())
    }
}
