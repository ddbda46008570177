//! The claim loop: takes capacity first, then exactly that much work.

use crate::Error;
use crate::claim::{Claim, Claimer};
use crate::finish::{Ended, FinisherHandle, Handlers};
use crate::observe::Progress;
use crate::run::attempt::Attempts;
use crate::run::start;
use backline_outbox::Doorbell;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Unknown operations claimed at a time: they are rare, and each costs a lookup.
const UNKNOWN_BATCH: usize = 50;
/// How often unknowns are looked for while ready work keeps the loop busy.
const UNKNOWN_EVERY: Duration = Duration::from_millis(100);
/// Capacity trickles back one by one under slow handlers; waiting this long gathers it into one round.
const GATHER: Duration = Duration::from_millis(2);
/// A declared sleep lasts 5 s (`Doorbell`); renewed well before it ends.
const SLEEP_RENEWAL: Duration = Duration::from_secs(2);
/// Lanes can be due with every row locked or held elsewhere; looking again sooner would only spin.
const SHORTEST_NAP: Duration = Duration::from_millis(5);

pub(crate) struct ClaimLoop {
    pub(crate) claimer: Claimer,
    pub(crate) attempts: Attempts,
    pub(crate) handlers: Arc<Handlers>,
    pub(crate) capacity: Arc<Semaphore>,
    pub(crate) batch: usize,
    pub(crate) finisher: FinisherHandle,
    pub(crate) bell: Doorbell,
    /// Rung by this process's own accepts.
    pub(crate) kick: Arc<Notify>,
    pub(crate) poll: Duration,
    pub(crate) soft: CancellationToken,
    pub(crate) hard: CancellationToken,
    pub(crate) progress: Arc<Progress>,
    pub(crate) running: TaskTracker,
}

/// What an idle loop remembers between its looks.
#[derive(Default)]
struct Idle {
    /// When it last declared to sleep.
    asleep_at: Option<Instant>,
    /// Last nap over work that was due but could not be claimed.
    nap: Duration,
}

impl ClaimLoop {
    /// Runs until the soft stop.
    pub(crate) async fn run(self) {
        let mut unknown_at = Instant::now();
        let mut outage = Duration::ZERO;
        let mut idle = Idle::default();
        while !self.soft.is_cancelled() {
            let Some(permits) = self.gather().await else { break };
            match self.round(permits, &mut unknown_at).await {
                Ok(found) => {
                    outage = Duration::ZERO;
                    self.progress.beat();
                    if !found {
                        self.idle(&mut idle).await;
                    } else if std::mem::take(&mut idle).asleep_at.is_some() {
                        // After the claim, not before it: taking the sleep back costs a commit.
                        self.wake().await;
                    }
                }
                Err(error) => {
                    outage = (outage * 2).clamp(Duration::from_millis(100), Duration::from_secs(5));
                    tracing::warn!(%error, "claiming failed; trying again");
                    self.progress.trouble(&error.to_string());
                    self.nap(outage).await;
                    self.reconnected().await;
                }
            }
        }
        if let Err(error) = self.bell.wake().await {
            tracing::debug!(%error, "sleep was not taken back; it ends by itself");
        }
    }

    /// After an outage the server may be another one: nothing is claimed before its incarnation is adopted.
    async fn reconnected(&self) {
        while !self.soft.is_cancelled() {
            match start::adopt_incarnation(&self.claimer.pool).await {
                Ok(()) => return,
                Err(error) => {
                    self.progress.trouble(&error.to_string());
                    self.nap(Duration::from_millis(500)).await;
                }
            }
        }
    }

    async fn gather(&self) -> Option<OwnedSemaphorePermit> {
        let first = tokio::select! {
            biased;
            () = self.soft.cancelled() => return None,
            permit = Arc::clone(&self.capacity).acquire_owned() => permit.ok()?,
        };
        if self.capacity.available_permits() < self.batch / 4 {
            tokio::time::sleep(GATHER).await;
        }
        let more = self.capacity.available_permits().min(self.batch - 1);
        let more = u32::try_from(more).unwrap_or(u32::MAX);
        let mut permits = first;
        if more > 0
            && let Ok(rest) = Arc::clone(&self.capacity).try_acquire_many_owned(more)
        {
            permits.merge(rest);
        }
        Some(permits)
    }

    async fn round(
        &self,
        mut permits: OwnedSemaphorePermit,
        unknown_at: &mut Instant,
    ) -> Result<bool, Error> {
        let mut found = false;
        if unknown_at.elapsed() >= UNKNOWN_EVERY {
            *unknown_at = Instant::now();
            let limit = permits.num_permits().min(UNKNOWN_BATCH);
            for claim in self.claimer.unknown(limit).await? {
                found = true;
                if let Some(permit) = permits.split(1) {
                    self.start(claim, permit);
                }
            }
        }
        if permits.num_permits() == 0 {
            return Ok(true);
        }
        let round = self.claimer.ready(permits.num_permits()).await?;
        found |= round.folded > 0 || !round.claims.is_empty();
        metrics::histogram!("backline_claim_batch_operations").record(count(round.claims.len()));
        for claim in round.claims {
            if let Some(permit) = permits.split(1) {
                self.start(claim, permit);
            }
        }
        Ok(found)
    }

    fn start(&self, claim: Claim, permit: OwnedSemaphorePermit) {
        let waited = claim.operation.claimed_at - claim.operation.accepted_at;
        metrics::histogram!("backline_operation_age_at_claim_seconds").record(waited.as_seconds_f64());
        let Some(handler) = self.handlers.get(claim.operation.kind.as_str()).cloned() else { return };
        let (attempts, finisher, hard) = (self.attempts.clone(), self.finisher.clone(), self.hard.clone());
        self.running.spawn(async move {
            let how = tokio::select! {
                biased;
                how = attempts.run(handler, &claim) => how,
                // The drain deadline passed. What may have left is settled by the lease's end, which knows the
                // difference; giving it back as ready here could submit twice.
                () = hard.cancelled() => return drop(claim),
            };
            finisher.end(Ended { claim, how, permit });
        });
    }

    /// Found nothing: declare sleep, look once more, then wait for a bell or for what is due next.
    async fn idle(&self, idle: &mut Idle) {
        if idle.asleep_at.is_none_or(|at| at.elapsed() > SLEEP_RENEWAL) {
            let first = idle.asleep_at.is_none();
            if let Err(error) = self.bell.fall_asleep().await {
                tracing::debug!(%error, "sleep not declared; polling");
            }
            idle.asleep_at = Some(Instant::now());
            if first {
                // A commit between the last look and the declaration rang for nobody: the caller looks again.
                return;
            }
        }
        let next = sqlx::query_file_scalar!("sql/next_due.sql", &self.claimer.kinds)
            .fetch_one(&self.claimer.pool)
            .await;
        let due = next.ok().flatten().map(|ms| Duration::from_millis(u64::try_from(ms).unwrap_or(0)));
        // What is due and was not claimed is paused, or locked by somebody: the naps grow while nothing comes of it.
        idle.nap = (idle.nap * 2).clamp(SHORTEST_NAP.min(self.poll), self.poll);
        let wait = due.map_or(self.poll, |due| due.max(idle.nap)).min(self.poll);
        tokio::select! {
            () = self.soft.cancelled() => {}
            () = self.kick.notified() => {}
            _rung = self.bell.wait(wait) => {}
        }
    }

    async fn wake(&self) {
        if let Err(error) = self.bell.wake().await {
            tracing::debug!(%error, "sleep was not taken back; it ends by itself");
        }
    }

    async fn nap(&self, wait: Duration) {
        tokio::select! {
            () = self.soft.cancelled() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "batch sizes are far below 2^52")]
fn count(n: usize) -> f64 {
    n as f64
}
