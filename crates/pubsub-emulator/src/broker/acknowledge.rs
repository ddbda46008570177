//! Acknowledgements and deadline changes, from unary calls and from streams.

use super::{Broker, Subscription};
use crate::limits;
use crate::state::{AckId, AckResult, Effects};
use std::time::Duration;
use tokio::time::Instant;
use tonic::Status;

/// How the ids of a request went.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct AckReport {
    pub(crate) done: Vec<String>,
    /// The lease is over.
    pub(crate) stale: Vec<String>,
    /// An earlier message of the key is not acknowledged.
    pub(crate) unordered: Vec<String>,
}

impl AckReport {
    fn add(&mut self, id: String, result: AckResult) {
        match result {
            AckResult::Done => self.done.push(id),
            AckResult::Stale => self.stale.push(id),
            AckResult::Unordered => self.unordered.push(id),
        }
    }
}

fn parse(subscription: &Subscription, texts: Vec<String>) -> Result<Vec<(Option<AckId>, String)>, Status> {
    limits::ack_ids(&texts)?;
    let mut ids = Vec::with_capacity(texts.len());
    for text in texts {
        let id: AckId = text.parse().map_err(|_| {
            Status::invalid_argument("ack_ids: some acknowledgement ids in the request are malformed")
        })?;
        ids.push(((id.subscription == subscription.id).then_some(id), text));
    }
    // In publish order, so that acknowledging a whole key at once is in order.
    ids.sort_by_key(|(id, _)| id.map(|id| id.position));
    Ok(ids)
}

impl Broker {
    /// Acknowledges deliveries.
    pub(crate) fn acknowledge(
        &self,
        subscription: &Subscription,
        ids: Vec<String>,
    ) -> Result<AckReport, Status> {
        let ids = parse(subscription, ids)?;
        let dropped: Vec<bool> = ids.iter().map(|_| self.faults.drops_ack(&subscription.name)).collect();
        let (mut report, mut effects, mut applied) = (AckReport::default(), Effects::default(), 0);
        let mut state = subscription.usable()?;
        for ((id, text), dropped) in ids.into_iter().zip(dropped) {
            let result = match id {
                _ if dropped => AckResult::Done,
                Some(id) => {
                    let result = state.queue.ack(id, &mut effects);
                    applied += u64::from(result == AckResult::Done);
                    result
                }
                None => AckResult::Stale,
            };
            report.add(text, result);
        }
        self.write_effects(subscription, &effects)?;
        state.queue.wake_receivers();
        drop(state);
        self.stats.acks.add(applied);
        self.stats.stale_acks.add(report.stale.len() as u64);
        Ok(report)
    }

    /// Moves deadlines to `seconds` from now; zero gives the deliveries back.
    pub(crate) fn modify_deadline(
        &self,
        subscription: &Subscription,
        ids: Vec<String>,
        seconds: i32,
    ) -> Result<AckReport, Status> {
        let by = match seconds {
            0 => Duration::ZERO,
            1..=600 => self
                .config
                .effective_deadline(Duration::from_secs(u64::try_from(seconds).unwrap_or_default())),
            _ => return Err(Status::invalid_argument("ack_deadline_seconds: must be 0 to 600")),
        };
        let ids = parse(subscription, ids)?;
        let now = Instant::now();
        let (mut report, mut effects) = (AckReport::default(), Effects::default());
        let mut state = subscription.usable()?;
        state.queue.attempt_shift = self.faults.dead_letter_shift();
        for (id, text) in ids {
            let result = id.map_or(AckResult::Stale, |id| state.queue.extend(id, by, now, &mut effects));
            report.add(text, result);
        }
        self.write_effects(subscription, &effects)?;
        state.queue.wake_receivers();
        subscription.rearm(&mut state);
        drop(state);
        let moved = if by.is_zero() { &self.stats.nacks } else { &self.stats.deadlines_extended };
        moved.add(report.done.len() as u64);
        self.forward(subscription, effects);
        Ok(report)
    }
}
