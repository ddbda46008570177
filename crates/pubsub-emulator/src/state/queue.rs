//! The messages of one subscription and who may receive them next.

use super::entry::{Delivery, Entry, Lease, Standing};
use super::ordering::Keys;
use super::stream::Slot;
use super::{AckId, Capacity, RetryBackoff};
use crate::wire::Stored;
use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Most messages in one response; more make no difference to throughput.
const BATCH_MESSAGES: usize = 1000;
/// Bytes after which a response is closed.
const BATCH_BYTES: usize = 1024 * 1024;

/// Where messages go that fail too often.
#[derive(Debug, Clone)]
pub(crate) struct DeadLetterRule {
    pub(crate) topic: String,
    pub(crate) attempts: u32,
}

/// The settings of a subscription that govern delivery.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rules {
    pub(crate) ordered: bool,
    pub(crate) exactly_once: bool,
    pub(crate) retain_acked: bool,
    pub(crate) retry: Option<RetryBackoff>,
    pub(crate) dead_letter: Option<DeadLetterRule>,
}

/// Delivery state of one subscription. Positions rise in publish order.
#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) rules: Rules,
    pub(super) entries: BTreeMap<u64, Entry>,
    /// Deliverable to anyone: messages without a key, and the next message of every key nobody owns.
    pub(super) ready: BTreeSet<u64>,
    pub(super) scheduled: BTreeSet<(Instant, u64)>,
    pub(super) leases: BTreeSet<(Instant, u64)>,
    pub(super) keys: Keys,
    pub(super) slots: BTreeMap<u64, Slot>,
    pub(super) retained: BTreeMap<u64, Arc<Stored>>,
    pub(super) next_lease: u64,
    /// Acknowledged lately on an exactly-once subscription: asking again after a lost reply is a success.
    pub(super) recent_acks: HashSet<(u64, u64)>,
    pub(super) recent_order: VecDeque<(u64, u64)>,
    /// The receiver that is asked first: the one after the last that took something.
    next_asked: u64,
    /// Added to the dead-letter policy's attempts by a fault.
    pub(crate) attempt_shift: i32,
}

impl Queue {
    /// An empty queue whose lease numbers start at `first_lease` (larger than any of an earlier life).
    pub(crate) fn new(rules: Rules, first_lease: u64) -> Self {
        Self {
            rules,
            entries: BTreeMap::new(),
            ready: BTreeSet::new(),
            scheduled: BTreeSet::new(),
            leases: BTreeSet::new(),
            keys: Keys::default(),
            slots: BTreeMap::new(),
            retained: BTreeMap::new(),
            next_lease: first_lease,
            recent_acks: HashSet::new(),
            recent_order: VecDeque::new(),
            next_asked: 0,
            attempt_shift: 0,
        }
    }

    /// Adds a message at the end, deliverable at once or from `not_before`.
    pub(crate) fn push(&mut self, position: u64, stored: Arc<Stored>, not_before: Option<Instant>) {
        self.insert(position, stored, 0, not_before);
    }

    pub(super) fn insert(
        &mut self,
        position: u64,
        stored: Arc<Stored>,
        failures: u32,
        not_before: Option<Instant>,
    ) {
        let key = if self.rules.ordered { stored.ordering_key.clone() } else { None };
        let standing = not_before.map_or(Standing::Ready, Standing::Scheduled);
        if let Some(at) = not_before {
            self.scheduled.insert((at, position));
        }
        self.entries.insert(position, Entry { stored, failures, standing });
        match key {
            Some(key) => self.append_keyed(&key, position),
            None if not_before.is_none() => {
                self.ready.insert(position);
            }
            None => {}
        }
    }

    /// Registers a receiver.
    pub(crate) fn open(&mut self, stream: u64, capacity: Capacity, wake: Arc<Notify>) {
        self.slots.insert(stream, Slot::new(capacity, wake));
        self.wake_receivers();
    }

    /// Forgets a receiver. What it has outstanding stays leased until acknowledged or expired.
    pub(crate) fn close(&mut self, stream: u64) {
        self.slots.remove(&stream);
        self.wake_receivers();
    }

    /// Takes the next messages for `stream`. `pick` chooses among the first few candidates (0 = oldest).
    pub(crate) fn take(
        &mut self,
        stream: u64,
        now: Instant,
        mut pick: impl FnMut(usize) -> usize,
    ) -> Vec<Delivery> {
        let Some(slot) = self.slots.get(&stream) else { return Vec::new() };
        let mut share = BATCH_MESSAGES;
        if self.passed_over(slot) {
            share = 0;
        } else if slot.capacity.shares {
            let others = self.slots.values().filter(|s| s.capacity.shares && s.has_room()).count();
            share = self.ready.len().div_ceil(others.max(1)).clamp(1, BATCH_MESSAGES);
        }
        let (mut out, mut bytes, mut shared) = (Vec::new(), 0, 0);
        while out.len() < BATCH_MESSAGES && bytes < BATCH_BYTES {
            let Some(slot) = self.slots.get_mut(&stream).filter(|slot| slot.has_room()) else { break };
            let position = if let Some(position) = slot.owned.pop_first() {
                position
            } else if shared < share {
                let candidates = self.ready.len();
                if candidates == 0 {
                    break;
                }
                let nth = pick(candidates).min(candidates - 1);
                let Some(position) = self.ready.iter().nth(nth).copied() else { break };
                self.ready.remove(&position);
                shared += 1;
                position
            } else {
                break;
            };
            if let Some(delivery) = self.lease(position, stream, now) {
                bytes += delivery.stored.wire.len();
                out.push(delivery);
            }
        }
        if !out.is_empty() {
            self.next_asked = stream + 1;
        }
        // Somebody else may be able to take what this receiver left.
        self.wake_receivers();
        out
    }

    /// A receiver that lets deliveries expire is often a process that stands still: what it takes comes late, and however
    /// the turns fall, it could take the same messages each time they come back.
    fn passed_over(&self, slot: &Slot) -> bool {
        slot.silent && self.slots.values().any(|other| !other.silent && other.has_room())
    }

    /// The receiver sent something.
    pub(crate) fn heard(&mut self, stream: u64) {
        if let Some(slot) = self.slots.get_mut(&stream) {
            slot.silent = false;
        }
    }

    fn lease(&mut self, position: u64, stream: u64, now: Instant) -> Option<Delivery> {
        let slot = self.slots.get_mut(&stream)?;
        let entry = self.entries.get_mut(&position)?;
        let until = now + slot.capacity.deadline;
        let lease = self.next_lease;
        self.next_lease += 1;
        entry.standing = Standing::Leased(Lease { id: lease, until, stream });
        slot.outstanding += 1;
        slot.bytes += entry.stored.wire.len();
        self.leases.insert((until, position));
        let delivery =
            Delivery { position, lease, attempt: entry.failures + 1, stored: Arc::clone(&entry.stored) };
        if self.rules.ordered
            && let Some(key) = delivery.stored.ordering_key.clone()
        {
            self.delivered_keyed(&key, stream);
        }
        Some(delivery)
    }

    /// Makes messages deliverable whose time has come.
    pub(crate) fn release_due(&mut self, now: Instant) {
        while let Some(&(at, position)) = self.scheduled.first().filter(|(at, _)| *at <= now) {
            self.scheduled.remove(&(at, position));
            let Some(entry) = self.entries.get_mut(&position) else { continue };
            entry.standing = Standing::Ready;
            match entry.stored.ordering_key.clone().filter(|_| self.rules.ordered) {
                Some(key) => self.offer(&key),
                None => {
                    self.ready.insert(position);
                }
            }
        }
        self.wake_receivers();
    }

    /// When something is due next: an expiry or a scheduled redelivery.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        let first = |set: &BTreeSet<(Instant, u64)>| set.first().map(|(at, _)| *at);
        match (first(&self.leases), first(&self.scheduled)) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Wakes as many receivers with room as there are messages, beginning after the last that took something.
    pub(crate) fn wake_receivers(&mut self) {
        for slot in self.slots.values().filter(|slot| !slot.owned.is_empty() && slot.has_room()) {
            slot.wake.notify_one();
        }
        let mut left = self.ready.len();
        if left == 0 || self.slots.is_empty() {
            return;
        }
        let from = self.next_asked;
        for (_, slot) in self.slots.range(from..).chain(self.slots.range(..from)) {
            if left == 0 {
                break;
            }
            if slot.has_room() && !self.passed_over(slot) {
                slot.wake.notify_one();
                left -= 1;
            }
        }
    }

    /// Wakes every receiver, to notice that the subscription ended or a fault applies.
    pub(crate) fn wake_all(&self) {
        for slot in self.slots.values() {
            slot.wake.notify_one();
        }
    }

    /// Changes the deadline of what `stream` receives from now on.
    pub(crate) fn set_deadline(&mut self, stream: u64, deadline: std::time::Duration) {
        if let Some(slot) = self.slots.get_mut(&stream) {
            slot.capacity.deadline = deadline;
        }
    }

    /// Messages not acknowledged.
    pub(crate) fn unacked(&self) -> usize {
        self.entries.len()
    }

    /// Messages out at clients.
    pub(crate) fn leased(&self) -> usize {
        self.leases.len()
    }

    /// What each open receiver has outstanding, in the order in which they came.
    pub(crate) fn held(&self) -> Vec<usize> {
        self.slots.values().map(|slot| slot.outstanding).collect()
    }

    /// The acknowledgement id of a delivery.
    pub(crate) fn ack_id(subscription: u64, delivery: &Delivery) -> AckId {
        AckId { subscription, position: delivery.position, lease: delivery.lease }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Bench, rules};
    use super::super::{Capacity, Effects};
    use futures_util::FutureExt;
    use std::sync::Arc;
    use std::time::Duration;
    use tokio::sync::Notify;

    #[test]
    fn a_silent_receiver_that_asks_first_gets_nothing_while_another_has_room() {
        let mut rules = rules();
        rules.ordered = true;
        let mut bench = Bench::new(rules);
        let deadline = Duration::from_secs(1);
        let mut open = |stream, messages| {
            let capacity = Capacity { messages, bytes: usize::MAX, deadline, shares: true };
            bench.queue.open(stream, capacity, Arc::default());
        };
        open(1, usize::MAX);
        open(2, 1);
        bench.publish(&[("a", "1"), ("b", "2"), ("c", "3")]);
        while !bench.queue.take(1, bench.now, |_| 0).is_empty() {}
        bench.now += deadline;
        bench.queue.expire(bench.now, &mut Effects::default());
        assert!(bench.queue.take(1, bench.now, |_| 0).is_empty());
        assert_eq!(bench.queue.take(2, bench.now, |_| 0).len(), 1);
        // The other has no room; and what sends something is not silent.
        assert_eq!(bench.queue.take(1, bench.now, |_| 0).len(), 2);
        bench.now += deadline;
        bench.queue.expire(bench.now, &mut Effects::default());
        assert_eq!(bench.queue.take(1, bench.now, |_| 0).len(), 2, "all are silent");
        bench.queue.heard(2);
        assert_eq!(bench.queue.take(2, bench.now, |_| 0).len(), 1);
    }

    #[test]
    fn what_a_silent_receiver_let_expire_goes_to_another_however_often_all_are_woken() {
        let mut bench = Bench::new(rules());
        let deadline = Duration::from_secs(1);
        let wakes = [1, 2].map(|stream| {
            let wake = Arc::new(Notify::new());
            let capacity = Capacity { messages: usize::MAX, bytes: usize::MAX, deadline, shares: true };
            bench.queue.open(stream, capacity, Arc::clone(&wake));
            (stream, wake)
        });
        let woken = || wakes.iter().find(|(_, wake)| wake.notified().now_or_never().is_some());
        bench.publish(&[("", "a")]);
        bench.queue.wake_receivers();
        let first = woken().map(|(stream, _)| *stream);
        assert!(first.is_some());
        let mut holder = first;
        for _ in 0..4 {
            let stream = holder.unwrap_or_default();
            assert_eq!(bench.queue.take(stream, bench.now, |_| 0).len(), 1);
            bench.now += deadline;
            bench.queue.expire(bench.now, &mut Effects::default());
            bench.queue.wake_receivers();
            bench.queue.wake_receivers();
            holder = woken().map(|(stream, _)| *stream);
            assert_ne!(holder, Some(stream));
        }
    }
}
