//! Acknowledging, extending and losing leases.

use super::entry::{AckResult, Effects, Lease, Standing};
use super::queue::Queue;
use super::{AckId, Forward};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Acknowledgements remembered on an exactly-once subscription.
const RECENT_ACKS: usize = 100_000;

impl Queue {
    fn current(&self, id: AckId) -> Option<Lease> {
        match self.entries.get(&id.position)?.standing {
            Standing::Leased(lease) if lease.id == id.lease => Some(lease),
            _ => None,
        }
    }

    fn key_of(&self, position: u64) -> Option<Arc<str>> {
        if !self.rules.ordered {
            return None;
        }
        self.entries.get(&position)?.stored.ordering_key.clone()
    }

    /// Acknowledges one delivery.
    pub(crate) fn ack(&mut self, id: AckId, effects: &mut Effects) -> AckResult {
        let recent = (id.position, id.lease);
        let Some(lease) = self.current(id) else {
            return if self.recent_acks.contains(&recent) { AckResult::Done } else { AckResult::Stale };
        };
        let key = self.key_of(id.position);
        if self.rules.exactly_once {
            if key.as_deref().is_some_and(|key| self.has_earlier_unacked(key, id.position)) {
                return AckResult::Unordered;
            }
            self.remember(recent);
        }
        self.end_lease(id.position, lease);
        self.heard(lease.stream);
        match key {
            None => self.settle(id.position, effects),
            Some(key) => {
                if let Some(entry) = self.entries.get_mut(&id.position) {
                    entry.standing = Standing::Acked;
                }
                self.returned_keyed(&key);
                self.settle_front(&key, effects);
            }
        }
        AckResult::Done
    }

    fn remember(&mut self, recent: (u64, u64)) {
        if self.recent_order.len() >= RECENT_ACKS
            && let Some(oldest) = self.recent_order.pop_front()
        {
            self.recent_acks.remove(&oldest);
        }
        self.recent_order.push_back(recent);
        self.recent_acks.insert(recent);
    }

    /// Moves the deadline of one delivery to `now + by`; zero is a nack.
    pub(crate) fn extend(
        &mut self,
        id: AckId,
        by: Duration,
        now: Instant,
        effects: &mut Effects,
    ) -> AckResult {
        let Some(lease) = self.current(id) else { return AckResult::Stale };
        self.heard(lease.stream);
        if by.is_zero() {
            self.end_lease(id.position, lease);
            self.fail(id.position, now, effects);
            return AckResult::Done;
        }
        let until = now + by;
        self.leases.remove(&(lease.until, id.position));
        self.leases.insert((until, id.position));
        if let Some(entry) = self.entries.get_mut(&id.position) {
            entry.standing = Standing::Leased(Lease { until, ..lease });
        }
        AckResult::Done
    }

    /// Ends leases whose deadline passed; returns how many.
    pub(crate) fn expire(&mut self, now: Instant, effects: &mut Effects) -> u64 {
        let mut expired = 0;
        while let Some(&(until, position)) = self.leases.first().filter(|(until, _)| *until <= now) {
            self.leases.remove(&(until, position));
            let Some(Standing::Leased(lease)) = self.entries.get(&position).map(|e| e.standing) else {
                continue;
            };
            self.end_lease(position, lease);
            if let Some(slot) = self.slots.get_mut(&lease.stream) {
                slot.silent = true;
            }
            self.fail(position, now, effects);
            expired += 1;
        }
        expired
    }

    /// Removes a lease from the books of time and flow control.
    pub(super) fn end_lease(&mut self, position: u64, lease: Lease) {
        self.leases.remove(&(lease.until, position));
        let size = self.entries.get(&position).map_or(0, |entry| entry.stored.wire.len());
        if let Some(slot) = self.slots.get_mut(&lease.stream) {
            slot.outstanding = slot.outstanding.saturating_sub(1);
            slot.bytes = slot.bytes.saturating_sub(size);
        }
    }

    /// A delivery came back: count it, then hold it back, offer it again or give it up.
    fn fail(&mut self, position: u64, now: Instant, effects: &mut Effects) {
        let Some(entry) = self.entries.get_mut(&position) else { return };
        entry.failures += 1;
        effects.failed.push((position, entry.failures));
        if let Some(rule) = &self.rules.dead_letter
            && entry.failures >= rule.attempts.saturating_add_signed(self.attempt_shift)
        {
            entry.standing = Standing::Forwarding;
            effects.forward.push(Forward {
                position,
                failures: entry.failures,
                topic: rule.topic.clone(),
                stored: Arc::clone(&entry.stored),
            });
            if let Some(key) = self.key_of(position) {
                self.returned_keyed(&key);
            }
            return;
        }
        self.offer_again(position, now, true);
    }

    fn offer_again(&mut self, position: u64, now: Instant, was_out: bool) {
        let Some(entry) = self.entries.get_mut(&position) else { return };
        let delay = self.rules.retry.map_or(Duration::ZERO, |retry| retry.after(entry.failures));
        if delay.is_zero() {
            entry.standing = Standing::Ready;
        } else {
            entry.standing = Standing::Scheduled(now + delay);
            self.scheduled.insert((now + delay, position));
        }
        match self.key_of(position) {
            Some(key) => {
                if was_out {
                    self.returned_keyed(&key);
                }
                self.rewind(&key, position);
            }
            None if delay.is_zero() => {
                self.ready.insert(position);
            }
            None => {}
        }
    }

    /// A message reached its dead-letter topic, or could not and is delivered again.
    pub(crate) fn finish_forward(&mut self, position: u64, reached: bool, now: Instant) -> Effects {
        let mut effects = Effects::default();
        let Some(entry) = self.entries.get_mut(&position) else { return effects };
        if entry.standing != Standing::Forwarding {
            return effects;
        }
        if !reached {
            self.offer_again(position, now, false);
        } else if let Some(key) = self.key_of(position) {
            if let Some(entry) = self.entries.get_mut(&position) {
                entry.standing = Standing::Acked;
            }
            self.settle_front(&key, &mut effects);
        } else {
            self.settle(position, &mut effects);
        }
        self.wake_receivers();
        effects
    }

    /// The message is done: drop it, or retain it for seeks.
    pub(super) fn settle(&mut self, position: u64, effects: &mut Effects) {
        if let Some(entry) = self.entries.remove(&position)
            && self.rules.retain_acked
        {
            self.retained.insert(position, entry.stored);
        }
        effects.settled.push(position);
    }
}
