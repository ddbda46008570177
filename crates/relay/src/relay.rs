//! The loop: take lanes, work on several at once, keep their leases, sleep when there is nothing.

use crate::config::{RelayConfig, SettingError};
use crate::gate::Gate;
use crate::lane_work::{Shared, work_lane};
use crate::progress::Progress;
use crate::sweep;
use crate::trail::Trail;
use backline_broker::Broker;
use backline_outbox::Doorbell;
use backline_outbox::drain::{DrainError, LaneHold, TakenLane, release_lane, take_lanes};
use futures_util::FutureExt;
use rand::Rng;
use sqlx::PgPool;
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long shutdown waits for requests under way, on top of their own time limit.
const DRAIN_MARGIN: Duration = Duration::from_secs(5);
/// Longest pause after the database failed.
const DATABASE_BACKOFF_MAX: Duration = Duration::from_secs(5);

/// One relay process.
#[derive(Debug)]
pub struct Relay {
    shared: Arc<Shared>,
    progress: Progress,
}

/// How the relay ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelayEnd {
    /// Everything under way was recorded and every lane given back.
    Clean,
    /// Some lanes were still under way: their leases run out, and their last batch may be published again.
    Abandoned {
        /// How many.
        lanes: usize,
    },
}

impl Relay {
    /// A relay that stops when `stop` is cancelled.
    ///
    /// # Errors
    /// The setting that cannot work.
    pub fn new(
        pool: PgPool,
        broker: Broker,
        config: RelayConfig,
        stop: CancellationToken,
    ) -> Result<Self, SettingError> {
        config.check()?;
        let shared = Shared {
            gate: Gate::new(config.backoff_start, config.backoff_max),
            trail: Mutex::new(Trail::new(config.commit_lag)),
            held: Mutex::default(),
            pool,
            broker,
            config,
            stop,
        };
        Ok(Self { shared: Arc::new(shared), progress: Progress::default() })
    }

    /// Signs of life for health pages.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// Runs until stopped.
    pub async fn run(self) -> RelayEnd {
        let Self { shared, progress } = self;
        let mut sweeps = sweep::start(&shared);
        let bell = if shared.config.doorbell {
            Doorbell::listen(&shared.pool, "backline_outbox")
        } else {
            Doorbell::polling(&shared.pool, "backline_outbox")
        };
        let mut lanes = JoinSet::new();
        let mut trouble = Duration::ZERO;
        while !shared.stop.is_cancelled() {
            progress.turn();
            match turn(&shared, &bell, &mut lanes, &progress).await {
                Ok(()) => trouble = Duration::ZERO,
                Err(error) => {
                    trouble = (trouble * 2).clamp(shared.config.backoff_start, DATABASE_BACKOFF_MAX);
                    tracing::warn!(%error, "cannot look at the outbox");
                    let pause = trouble.mul_f64(rand::rng().random_range(0.5..1.0));
                    tokio::select! { () = tokio::time::sleep(pause) => {}, () = shared.stop.cancelled() => {} }
                }
            }
        }
        progress.stop();
        // Lanes see the stop between batches: what is at the broker is still recorded.
        let limit = shared.config.publish_timeout + DRAIN_MARGIN;
        let drained = tokio::time::timeout(limit, async { while reap(&shared, lanes.join_next().await) {} });
        let _ = drained.await;
        let _ = tokio::time::timeout(DRAIN_MARGIN, bell.wake()).await;
        sweeps.shutdown().await;
        match lanes.len() {
            0 => RelayEnd::Clean,
            lanes => RelayEnd::Abandoned { lanes },
        }
    }
}

type LaneResult = (LaneHold, Result<(), DrainError>);

/// Takes what is free, then waits for something to happen.
async fn turn(
    shared: &Arc<Shared>,
    bell: &Doorbell,
    lanes: &mut JoinSet<LaneResult>,
    progress: &Progress,
) -> Result<(), DrainError> {
    let found = take(shared, lanes).await?;
    progress.look();
    if found || !lanes.is_empty() {
        // A short tick as well: lanes fill up while others are worked on.
        let tick = Duration::from_millis(20);
        if let Ok(ended) = tokio::time::timeout(tick, lanes.join_next()).await {
            reap(shared, ended);
        }
        return Ok(());
    }
    bell.fall_asleep().await?;
    while !take(shared, lanes).await? {
        progress.turn();
        progress.look();
        tokio::select! {
            _ = bell.wait(shared.config.poll) => {}
            () = shared.stop.cancelled() => break,
        }
        bell.fall_asleep().await?;
    }
    Ok(bell.wake().await?)
}

async fn take(shared: &Arc<Shared>, lanes: &mut JoinSet<LaneResult>) -> Result<bool, DrainError> {
    let config = &shared.config;
    let free = config.lanes.saturating_sub(lanes.len());
    if free == 0 || shared.stop.is_cancelled() {
        return Ok(false);
    }
    let until = Instant::now() + config.lease;
    let paused = shared.gate.paused(Instant::now());
    let taken = take_lanes(&shared.pool, free, &config.owner, config.lease, &paused).await?;
    let found = !taken.is_empty();
    for taken in taken {
        let hold = taken.hold;
        shared.held.lock().unwrap_or_else(PoisonError::into_inner).insert(hold.lane, (hold, until));
        lanes.spawn(run_lane(Arc::clone(shared), taken));
    }
    Ok(found)
}

async fn run_lane(shared: Arc<Shared>, taken: TakenLane) -> LaneResult {
    // A lane that panicked must be accounted for like any other, or its lease would be renewed for ever.
    let Ok(result) = AssertUnwindSafe(work_lane(&shared, &taken)).catch_unwind().await else {
        metrics::counter!("backline_relay_lane_panics_total").increment(1);
        tracing::error!(lane = taken.hold.lane, "lane panicked; its lease runs out and it is taken anew");
        return (taken.hold, Ok(()));
    };
    if let Err(DrainError::Database(_)) = &result {
        // Best effort, so that the lane need not wait for its lease to end; the mark stays where it was.
        let _ = release_lane(&shared.pool, &taken, taken.mark).await;
    }
    (taken.hold, result)
}

/// Accounts for a lane that ended; `false` when none is left.
fn reap(shared: &Shared, ended: Option<Result<LaneResult, tokio::task::JoinError>>) -> bool {
    match ended {
        None => return false,
        Some(Ok((hold, result))) => {
            forget(&shared.held, hold);
            match result {
                Ok(()) => {}
                Err(DrainError::Fenced) => {
                    metrics::counter!("backline_relay_lane_lease_lost_total").increment(1);
                    tracing::warn!(lane = hold.lane, token = hold.token, "lane lost to another relay");
                }
                Err(error @ DrainError::Database(_)) => {
                    tracing::warn!(lane = hold.lane, %error, "lane given up");
                }
            }
        }
        Some(Err(panic)) => {
            tracing::error!(%panic, "lane task was cancelled");
        }
    }
    true
}

fn forget(held: &Mutex<HashMap<i16, (LaneHold, Instant)>>, hold: LaneHold) {
    let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
    if held.get(&hold.lane).is_some_and(|(current, _)| *current == hold) {
        held.remove(&hold.lane);
    }
}
