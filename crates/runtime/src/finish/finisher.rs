//! The finisher: collects ends, writes them in batches, and lets capacity go only when they are durable.

use crate::Error;
use crate::author::erased::Handler;
use crate::finish::own::OwnWriters;
use crate::finish::{Ended, How, batch};
use sqlx::PgPool;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, mpsc};

/// Ends per transaction: most of a batch's gain is there by 100, all of it by 500 (peers.md, operations table).
const BATCH: usize = 500;
/// After a batch of this size the next one is gathered for [`GATHER`]: a claimed batch of quick operations ends over a few
/// milliseconds, and half of it in each of two transactions costs a quarter more than one.
const BUSY: usize = BATCH / 8;
/// See [`BUSY`]; short against a commit that waits for the disk.
const GATHER: Duration = Duration::from_millis(2);
/// Leases whose operations have all ended go with the next batch's transaction, or alone when none comes for this long.
const TIDY: Duration = Duration::from_millis(200);
/// Pause before an end that the database did not take is written again.
pub(super) const RETRY_PAUSE: Duration = Duration::from_millis(200);

pub(crate) type Handlers = BTreeMap<&'static str, Arc<dyn Handler>>;

/// Where attempts send their ends.
#[derive(Clone)]
pub(crate) struct FinisherHandle {
    ends: mpsc::UnboundedSender<Ended>,
}

impl FinisherHandle {
    /// Hands an end over. Unbounded on purpose: every end holds a capacity permit, which is the bound.
    pub(crate) fn end(&self, ended: Ended) {
        // The finisher outlives all attempts; a closed channel means the process is going down hard, and the lease
        // will run out.
        let _ = self.ends.send(ended);
    }
}

pub(crate) struct Finisher {
    pool: PgPool,
    handlers: Arc<Handlers>,
    ends: mpsc::UnboundedReceiver<Ended>,
    /// Rung when an end may have made work ready: a retry, a promoted waiter, a newer generation. The claim loop may have
    /// gone to sleep before it was.
    kick: Arc<Notify>,
    /// Eight own transactions at a time give 90 % of what thirty-two do (peers.md).
    own: OwnWriters,
}

impl Finisher {
    pub(crate) fn new(
        pool: PgPool,
        handlers: Arc<Handlers>,
        kick: Arc<Notify>,
        own: usize,
    ) -> (Self, FinisherHandle) {
        let (sender, ends) = mpsc::unbounded_channel();
        let own = OwnWriters::new(pool.clone(), Arc::clone(&kick), own);
        (Self { pool, handlers, ends, kick, own }, FinisherHandle { ends: sender })
    }

    /// Runs until every handle is gone and everything handed over is written.
    pub(crate) async fn run(mut self) {
        let mut buffer = Vec::with_capacity(BATCH);
        let mut empty = Vec::new();
        let mut busy = false;
        loop {
            buffer.clear();
            let received = self.ends.recv_many(&mut buffer, BATCH);
            let received = if empty.is_empty() {
                received.await
            } else if let Ok(received) = tokio::time::timeout(TIDY, received).await {
                received
            } else {
                drop_leases(&self.pool, std::mem::take(&mut empty)).await;
                continue;
            };
            if received == 0 {
                break;
            }
            if busy {
                self.gather(&mut buffer).await;
            }
            busy = buffer.len() >= BUSY;
            let mut batch = Vec::with_capacity(buffer.len());
            for ended in buffer.drain(..) {
                let handler = self.handlers.get(ended.claim.operation.kind.as_str());
                if handler.is_some_and(|handler| ended.how.records(handler.as_ref())) {
                    self.write_own(ended);
                } else {
                    batch.push(ended);
                }
            }
            if !batch.is_empty() {
                self.write_batch(batch, &mut empty).await;
            }
        }
        self.own.finish().await;
        drop_leases(&self.pool, empty).await;
    }

    async fn gather(&mut self, buffer: &mut Vec<Ended>) {
        let until = tokio::time::Instant::now() + GATHER;
        while buffer.len() < BATCH {
            let room = BATCH - buffer.len();
            match tokio::time::timeout_at(until, self.ends.recv_many(buffer, room)).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
    }

    /// `empty` are leases to drop in the same transaction; those that this batch empties are left in it.
    async fn write_batch(&mut self, batch: Vec<Ended>, empty: &mut Vec<i64>) {
        let accepted = loop {
            match batch::write(&self.pool, &batch, empty).await {
                Ok(accepted) => break accepted,
                Err(error) if is_outage(&error) => {
                    tracing::warn!(%error, ends = batch.len(), "ends are not written yet; trying again");
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
                Err(error) => {
                    // One bad row must not hold its neighbours: each gets a transaction of its own.
                    tracing::error!(%error, ends = batch.len(), "batch refused; writing its ends one by one");
                    break HashSet::new();
                }
            }
        };
        if !accepted.is_empty() {
            empty.clear();
        }
        for ended in batch {
            if accepted.contains(&ended.claim.operation.id) {
                empty.extend(done(ended));
            } else {
                self.write_own(ended);
            }
        }
        self.kick.notify_one();
    }

    fn write_own(&mut self, ended: Ended) {
        let Some(handler) = self.handlers.get(ended.claim.operation.kind.as_str()).cloned() else { return };
        self.own.write(handler, ended);
    }
}

/// The end is durable: its capacity is free again.
pub(super) fn done(ended: Ended) -> Option<i64> {
    if let How::Finish { outcome, .. } = &ended.how {
        metrics::counter!("backline_operations_finished_total",
            "kind" => ended.claim.operation.kind.clone(), "outcome" => outcome.as_str())
        .increment(1);
    }
    let Ended { claim, permit, .. } = ended;
    drop(permit);
    claim.lease.end()
}

pub(super) async fn drop_leases(pool: &PgPool, leases: Vec<i64>) {
    if leases.is_empty() {
        return;
    }
    // Only tidiness: a lease left behind runs out and the sweep takes it.
    if let Err(error) = sqlx::query_file!("sql/drop_leases.sql", &leases).execute(pool).await {
        tracing::debug!(%error, "empty leases stay until the sweep");
    }
}

/// Whether the same write may succeed later without any change.
pub(super) fn is_outage(error: &Error) -> bool {
    use backline_outbox::AsTransient;
    match error {
        Error::Database(sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed) => true,
        Error::Database(error) => {
            error.is_transient()
                || error.as_database_error().and_then(|e| e.code()).is_some_and(|code| {
                    // lock and statement timeouts, full disk
                    matches!(code.as_ref(), "55P03" | "57014" | "53100" | "53200" | "0A000")
                })
        }
        _ => false,
    }
}
