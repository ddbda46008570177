//! Ends that get a transaction each, a bounded number at a time.

use crate::Error;
use crate::author::erased::Handler;
use crate::finish::finisher::{RETRY_PAUSE, done, drop_leases, is_outage};
use crate::finish::{Ended, How, single};
use backline_outbox::Session;
use sqlx::PgPool;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// An end and the handler that records it.
type Work = (Arc<dyn Handler>, Ended);

/// Writers of ends one by one. Each keeps its connection while there is more to write and never longer: an idle
/// connection that nobody can have would stop everybody else.
pub(crate) struct OwnWriters {
    pool: PgPool,
    /// Rung after each end.
    kick: Arc<Notify>,
    most: usize,
    queue: Arc<Mutex<Queue>>,
    tasks: JoinSet<()>,
}

#[derive(Default)]
struct Queue {
    /// Unbounded on purpose: every end holds a capacity permit, which is the bound.
    waiting: VecDeque<Work>,
    writers: usize,
}

impl OwnWriters {
    /// At most `most` at a time.
    pub(crate) fn new(pool: PgPool, kick: Arc<Notify>, most: usize) -> Self {
        Self { pool, kick, most, queue: Arc::default(), tasks: JoinSet::new() }
    }

    /// Takes an end over.
    pub(crate) fn write(&mut self, handler: Arc<dyn Handler>, ended: Ended) {
        while self.tasks.try_join_next().is_some() {}
        let mut queue = lock(&self.queue);
        queue.waiting.push_back((handler, ended));
        if queue.writers == self.most {
            return;
        }
        queue.writers += 1;
        drop(queue);
        let writer = Writer { kick: Arc::clone(&self.kick), queue: Arc::clone(&self.queue) };
        self.tasks.spawn(writer.run(self.pool.clone()));
    }

    /// Waits until everything is written.
    pub(crate) async fn finish(mut self) {
        while self.tasks.join_next().await.is_some() {}
    }
}

struct Writer {
    kick: Arc<Notify>,
    queue: Arc<Mutex<Queue>>,
}

impl Writer {
    async fn run(self, pool: PgPool) {
        let mut session = Session::new(pool.clone());
        while let Some((handler, ended)) = self.next() {
            write_own(&pool, &mut session, handler.as_ref(), ended).await;
            self.kick.notify_one();
        }
    }

    /// The next end, or this writer is one no more: decided under the lock under which ends are added.
    fn next(&self) -> Option<Work> {
        let mut queue = lock(&self.queue);
        let next = queue.waiting.pop_front();
        if next.is_none() {
            queue.writers -= 1;
        }
        next
    }
}

fn lock(queue: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn write_own(pool: &PgPool, session: &mut Session, handler: &dyn Handler, mut ended: Ended) {
    loop {
        match single::write(pool, session, handler, &ended).await {
            Ok(_) => break,
            Err(error) if is_outage(&error) => {
                tracing::warn!(%error, operation = %ended.claim.operation.id, "end is not written yet; trying again");
                tokio::time::sleep(RETRY_PAUSE).await;
            }
            Err(error) => {
                metrics::counter!("backline_record_failures_total", "kind" => handler.kind()).increment(1);
                tracing::error!(%error, operation = %ended.claim.operation.id, "record failed");
                let Some(how) = after_record_failure(handler, &ended, &error) else { break };
                ended.how = how;
            }
        }
    }
    let leases: Vec<i64> = done(ended).into_iter().collect();
    if !leases.is_empty() {
        // Waiting for a second connection with one in hand, all writers could wait for each other.
        session.release();
        drop_leases(pool, leases).await;
    }
}

/// The effect happened, but its record cannot be written: the operation stays unknown with the output as evidence, so
/// that a mended build records it from there and nothing is submitted again. A leave that failed has no second form:
/// its lease runs out.
fn after_record_failure(handler: &dyn Handler, ended: &Ended, error: &Error) -> Option<How> {
    use crate::transition::State;
    use backline_failure::{Failure, Mode};
    let How::Finish { output, .. } = &ended.how else { return None };
    let facts = output.as_deref().and_then(|text| serde_json::from_str(text).ok());
    let mut failure = Failure::unknown("record_failed").with_detail(error.to_string());
    if let Some(facts) = facts {
        failure = failure.with_evidence(facts);
    }
    let state = if handler.spec().mode == Mode::Reconcile { State::Ready } else { State::Unknown };
    Some(How::Leave {
        state,
        delay: handler.spec().policy.backoff_base.max(Duration::from_secs(1)),
        counted: true,
        next_submission: false,
        repeatable: true,
        failure: Some(failure),
    })
}
