//! Emptying one lane while it is held.

use crate::config::RelayConfig;
use crate::gate::Gate;
use crate::hand_over::{HandedOver, hand_over};
use crate::settle::settle;
use crate::trail::Trail;
use backline_broker::Broker;
use backline_crash_point::seeded_bug;
use backline_outbox::drain::{DrainError, Entry, LaneHold, TakenLane, read_batch, release_lane};
use sqlx::PgPool;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// What lanes worked on at the same time share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) pool: PgPool,
    pub(crate) broker: Broker,
    pub(crate) config: RelayConfig,
    pub(crate) gate: Gate,
    pub(crate) trail: Mutex<Trail>,
    pub(crate) held: Mutex<HashMap<i16, (LaneHold, Instant)>>,
    pub(crate) stop: CancellationToken,
}

impl Shared {
    /// Whether the lease is known to be in force; the local clock started before the statement that took it.
    fn still_held(&self, hold: LaneHold) -> bool {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.get(&hold.lane).is_some_and(|(current, until)| *current == hold && Instant::now() < *until)
    }

    async fn read(&self, hold: LaneHold, after: i64, paused: &[String]) -> Result<Vec<Entry>, DrainError> {
        let RelayConfig { batch_rows, batch_bytes, .. } = self.config;
        read_batch(&self.pool, hold.lane, after, batch_rows, batch_bytes, paused).await
    }
}

/// Publishes the lane until it is empty, its turn is over, a topic fails or shutdown begins; then gives it back.
///
/// While one batch is at the broker, the one before it is recorded and the next one is read.
pub(crate) async fn work_lane(shared: &Shared, taken: &TakenLane) -> Result<(), DrainError> {
    let TakenLane { hold, mark: start, .. } = *taken;
    // Before the first reading: what is settled now is visible to every reading that follows.
    let settled = shared.trail.lock().unwrap_or_else(PoisonError::into_inner).settled();
    let paused = shared.gate.paused(Instant::now());
    let mut cursor = start;
    let mut complete = paused.is_empty();
    let mut answered = HandedOver::default();
    let mut batch = shared.read(hold, cursor, &paused).await?;
    let mut turns = 0;
    let mut drained = batch.is_empty();
    while !drained {
        if !shared.still_held(hold) {
            return Err(DrainError::Fenced);
        }
        cursor = batch.iter().map(|entry| entry.seq).max().unwrap_or(cursor);
        turns += 1;
        let last_turn = turns >= shared.config.batches_per_hold || shared.stop.is_cancelled();
        let behind = async {
            settle(&shared.pool, hold, shared.config.lease, &answered).await?;
            if last_turn { Ok(Vec::new()) } else { shared.read(hold, cursor, &paused).await }
        };
        if seeded_bug(1) {
            // Recorded as published before the broker has confirmed it.
            settle(&shared.pool, hold, shared.config.lease, &HandedOver::presumed(&batch)).await?;
        }
        let publish = hand_over(&shared.broker, &shared.gate, hold.lane, batch);
        let (done, next) = tokio::join!(publish, behind);
        answered = done;
        complete &= !answered.incomplete;
        batch = match next {
            Ok(next) => next,
            Err(DrainError::Fenced) => return Err(lost_after_publishing(&answered)),
            Err(error) => {
                settle(&shared.pool, hold, shared.config.lease, &answered).await?;
                return Err(error);
            }
        };
        if last_turn || answered.incomplete {
            break;
        }
        drained = batch.is_empty();
    }
    settle(&shared.pool, hold, shared.config.lease, &answered).await?;
    let mark = match (complete, drained) {
        // The highest number seen is taken for a watermark.
        _ if seeded_bug(3) => cursor,
        // Nothing that is visible was left behind.
        (true, true) => settled.max(start),
        (true, false) => cursor.min(settled).max(start),
        (false, _) => start,
    };
    release_lane(&shared.pool, taken, mark).await
}

fn lost_after_publishing(answered: &HandedOver) -> DrainError {
    let again = u64::try_from(answered.confirmed.len()).unwrap_or(u64::MAX);
    metrics::counter!("backline_outbox_republished_total", "reason" => "lane lost").increment(again);
    DrainError::Fenced
}
