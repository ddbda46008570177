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
/// Capacity trickles back one by one where ends are written one by one. A quarter of a batch is waited for this long at
/// most, so that rounds stay few.
const GATHER: Duration = Duration::from_millis(50);
/// No more is waited for when nothing came for this long, a few commits: the rest is held by slow handlers.
const TRICKLE: Duration = Duration::from_millis(5);
/// A declared sleep lasts 5 s (`Doorbell`); renewed well before it ends.
const SLEEP_RENEWAL: Duration = Duration::from_secs(2);
/// Lanes can be due with every row locked or held elsewhere; looking again sooner would only spin.
const SHORTEST_NAP: Duration = Duration::from_millis(5);

pub(crate) struct ClaimLoop {
    pub(crate) claimer: Claimer,
    pub(crate) attempts: Attempts,
    pub(crate) handlers: Arc<Handlers>,
    pub(crate) capacity: Arc<Semaphore>,
    /// Operations claimed per transaction at most.
    pub(crate) batch_size: usize,
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

/// What the loop remembers between rounds.
struct Pace {
    /// When unknowns were last looked for.
    unknown_at: Instant,
    /// The last batch was as large as there was capacity for it.
    backlog: bool,
}

/// What one claim transaction brought.
#[derive(Default)]
struct Batch {
    found: bool,
    full: bool,
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
        let mut pace = Pace { unknown_at: Instant::now(), backlog: false };
        let mut outage = Duration::ZERO;
        let mut idle = Idle::default();
        while !self.soft.is_cancelled() {
            let Some(permits) = self.gather().await else { break };
            match self.round(permits, &mut pace).await {
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
        let mut permits = first;
        let until = Instant::now() + GATHER;
        loop {
            if let Some(more) = self.more(self.batch_size - permits.num_permits()) {
                permits.merge(more);
            }
            if permits.num_permits() >= self.quarter() || Instant::now() >= until {
                return Some(permits);
            }
            let next = Arc::clone(&self.capacity).acquire_owned();
            match tokio::time::timeout(TRICKLE, next).await {
                Ok(Ok(one)) => permits.merge(one),
                Ok(Err(_)) | Err(_) => return Some(permits),
            }
        }
    }

    /// The smallest batch that is worth a transaction while there is more to claim.
    fn quarter(&self) -> usize {
        self.batch_size / 4
    }

    /// Capacity that is free now, at most so much.
    fn more(&self, most: usize) -> Option<OwnedSemaphorePermit> {
        let free = self.capacity.available_permits().min(most);
        let free = u32::try_from(free).ok().filter(|free| *free > 0)?;
        Arc::clone(&self.capacity).try_acquire_many_owned(free).ok()
    }

    /// Ready work first, because an idle loop is woken for it; unknowns keep half of the permits, at most their batch.
    /// With a single permit unknowns come first, or ready work would always have it.
    async fn round(&self, mut permits: OwnedSemaphorePermit, pace: &mut Pace) -> Result<bool, Error> {
        let look = pace.unknown_at.elapsed() >= UNKNOWN_EVERY;
        if look {
            pace.unknown_at = Instant::now();
        }
        let mut found = look && permits.num_permits() == 1 && self.unknown(&mut permits).await?;
        let kept = if look { (permits.num_permits() / 2).min(UNKNOWN_BATCH) } else { 0 };
        let kept = permits.split(kept);
        if permits.num_permits() > 0 {
            found |= self.ready(permits, pace).await?;
        }
        if let Some(mut kept) = kept.filter(|kept| kept.num_permits() > 0) {
            found |= self.unknown(&mut kept).await?;
        }
        Ok(found)
    }

    async fn unknown(&self, permits: &mut OwnedSemaphorePermit) -> Result<bool, Error> {
        let claims = self.claimer.unknown(permits.num_permits().min(UNKNOWN_BATCH)).await?;
        let found = !claims.is_empty();
        self.start(claims, permits);
        Ok(found)
    }

    /// While there is a backlog a second batch is claimed beside the first, from other lanes: one connection claims
    /// slower than one writes ends.
    async fn ready(&self, permits: OwnedSemaphorePermit, pace: &mut Pace) -> Result<bool, Error> {
        let worth = pace.backlog && self.capacity.available_permits() >= self.quarter();
        let second = if worth { self.more(self.batch_size) } else { None };
        let second = async {
            match second {
                Some(permits) => self.batch(permits).await,
                None => Ok(Batch::default()),
            }
        };
        let (first, second) = tokio::join!(self.batch(permits), second);
        let (first, second) = (first?, second?);
        pace.backlog = first.full;
        Ok(first.found || second.found)
    }

    async fn batch(&self, mut permits: OwnedSemaphorePermit) -> Result<Batch, Error> {
        let limit = permits.num_permits();
        let round = self.claimer.ready(limit).await?;
        let claimed = round.claims.len();
        metrics::histogram!("backline_claim_batch_operations").record(count(claimed));
        self.start(round.claims, &mut permits);
        Ok(Batch { found: round.folded > 0 || claimed > 0, full: claimed == limit })
    }

    fn start(&self, claims: Vec<Claim>, permits: &mut OwnedSemaphorePermit) {
        for claim in claims {
            if let Some(permit) = permits.split(1) {
                self.attempt(claim, permit);
            }
        }
    }

    fn attempt(&self, claim: Claim, permit: OwnedSemaphorePermit) {
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
