//! Seeking: the whole delivery state is rebuilt from what is retained.

use super::queue::Queue;
use crate::wire::Stored;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Messages by position, with the failures counted so far.
pub(crate) type Backlog = BTreeMap<u64, (Arc<Stored>, u32)>;

impl Queue {
    /// Every message this subscription still knows, acknowledged or not.
    pub(crate) fn known(&self) -> Backlog {
        let acked = self.retained.iter().map(|(position, stored)| (*position, (Arc::clone(stored), 0)));
        acked.chain(self.backlog()).collect()
    }

    /// The messages not acknowledged for good.
    pub(crate) fn backlog(&self) -> Backlog {
        self.entries
            .iter()
            .map(|(position, entry)| (*position, (Arc::clone(&entry.stored), entry.failures)))
            .collect()
    }

    /// Positions retained although acknowledged.
    pub(crate) fn retained(&self) -> &BTreeMap<u64, Arc<Stored>> {
        &self.retained
    }

    /// Replaces the state: `unacked` is delivered (again), `acked` retained. Every lease ends.
    pub(crate) fn reset(&mut self, unacked: Backlog, acked: BTreeMap<u64, Arc<Stored>>) {
        self.entries.clear();
        self.ready.clear();
        self.scheduled.clear();
        self.leases.clear();
        self.keys.clear();
        self.recent_acks.clear();
        self.recent_order.clear();
        for slot in self.slots.values_mut() {
            (slot.outstanding, slot.bytes) = (0, 0);
            slot.owned.clear();
        }
        self.retained = if self.rules.retain_acked { acked } else { BTreeMap::new() };
        for (position, (stored, failures)) in unacked {
            self.insert(position, stored, failures, None);
        }
        self.wake_receivers();
    }

    /// Drops acknowledged messages published before `oldest` (Unix nanoseconds), or all if none are kept.
    pub(crate) fn forget_retained(&mut self, oldest: i64) {
        if !self.rules.retain_acked {
            self.retained.clear();
        }
        while let Some(first) = self.retained.first_entry().filter(|e| e.get().published < oldest) {
            first.remove();
        }
    }

    /// Replays a journal record: the position is done.
    pub(crate) fn replay_settled(&mut self, position: u64) {
        if let Some(entry) = self.entries.remove(&position)
            && self.rules.retain_acked
        {
            self.retained.insert(position, entry.stored);
        }
    }

    /// Replays a journal record: the position failed this often.
    pub(crate) fn replay_failed(&mut self, position: u64, failures: u32) {
        if let Some(entry) = self.entries.get_mut(&position) {
            entry.failures = failures;
        }
    }
}
