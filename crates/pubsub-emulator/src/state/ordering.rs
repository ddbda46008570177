//! Ordering keys. The messages of a key go out in order to one receiver at a time; when one comes back,
//! every later one of the key goes out again, acknowledged or not.

use super::entry::{Effects, Standing};
use super::queue::Queue;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

pub(super) type Keys = HashMap<Arc<str>, KeyLine>;

/// The messages of one key that are not done.
#[derive(Debug, Default)]
pub(super) struct KeyLine {
    /// Positions, oldest first.
    line: VecDeque<u64>,
    /// How many of them, from the front, have gone out.
    delivered: usize,
    /// How many of those are out now.
    outstanding: usize,
    /// The receiver that gets the key while anything of it is out.
    owner: Option<u64>,
}

impl Queue {
    pub(super) fn append_keyed(&mut self, key: &Arc<str>, position: u64) {
        let line = &mut self.keys.entry(Arc::clone(key)).or_default().line;
        line.push_back(position);
        self.offer(key);
    }

    /// Makes the key's next message deliverable, to its owner or to anyone.
    pub(super) fn offer(&mut self, key: &str) {
        let Some(line) = self.keys.get_mut(key) else { return };
        while let Some(position) = line.line.get(line.delivered) {
            match self.entries.get(position).map(|entry| entry.standing) {
                Some(Standing::Ready) => {
                    match line.owner {
                        None => {
                            self.ready.insert(*position);
                        }
                        // A receiver that is gone keeps the key until what it had expires.
                        Some(owner) => {
                            if let Some(slot) = self.slots.get_mut(&owner) {
                                slot.owned.insert(*position);
                            }
                        }
                    }
                    return;
                }
                // Left the line of delivery already.
                Some(Standing::Acked | Standing::Forwarding) | None => line.delivered += 1,
                Some(Standing::Scheduled(_) | Standing::Leased(_)) => return,
            }
        }
    }

    /// Takes the key's next message out of every ready set.
    fn withdraw(&mut self, key: &str) {
        let Some(line) = self.keys.get(key) else { return };
        if let Some(position) = line.line.get(line.delivered) {
            self.ready.remove(position);
            if let Some(slot) = line.owner.and_then(|owner| self.slots.get_mut(&owner)) {
                slot.owned.remove(position);
            }
        }
    }

    /// The key's next message went out to `stream`.
    pub(super) fn delivered_keyed(&mut self, key: &str, stream: u64) {
        if let Some(line) = self.keys.get_mut(key) {
            line.delivered += 1;
            line.outstanding += 1;
            line.owner = Some(stream);
        }
        self.offer(key);
    }

    /// One message of the key is no longer out.
    pub(super) fn returned_keyed(&mut self, key: &str) {
        let Some(line) = self.keys.get_mut(key) else { return };
        line.outstanding = line.outstanding.saturating_sub(1);
        if line.outstanding == 0 {
            self.withdraw(key);
            if let Some(line) = self.keys.get_mut(key) {
                line.owner = None;
            }
            self.offer(key);
        }
    }

    /// Whether a message of the key before `position` is neither acknowledged nor forwarded.
    pub(super) fn has_earlier_unacked(&self, key: &str, position: u64) -> bool {
        let Some(line) = self.keys.get(key) else { return false };
        line.line
            .iter()
            .take_while(|earlier| **earlier < position)
            .any(|earlier| self.entries.get(earlier).is_some_and(|entry| entry.standing != Standing::Acked))
    }

    /// Drops the acknowledged messages at the front of the line: nothing can call them back.
    pub(super) fn settle_front(&mut self, key: &Arc<str>, effects: &mut Effects) {
        let Some(line) = self.keys.get_mut(key) else { return };
        let mut done = Vec::new();
        while let Some(position) = line.line.front().copied() {
            if self.entries.get(&position).is_some_and(|entry| entry.standing != Standing::Acked) {
                break;
            }
            line.line.pop_front();
            line.delivered = line.delivered.saturating_sub(1);
            done.push(position);
        }
        if line.line.is_empty() {
            self.keys.remove(key);
        }
        for position in done {
            self.settle(position, effects);
        }
    }

    /// `position` (already returned) goes out again, and everything of the key after it.
    pub(super) fn rewind(&mut self, key: &str, position: u64) {
        self.withdraw(key);
        let Some(line) = self.keys.get(key) else { return };
        let Ok(index) = line.line.binary_search(&position) else { return };
        let delivered_later = index + 1..line.delivered.max(index + 1);
        let later: Vec<u64> = line.line.range(delivered_later).copied().collect();
        for position in later {
            let Some(entry) = self.entries.get_mut(&position) else { continue };
            match entry.standing {
                Standing::Leased(lease) => {
                    entry.standing = Standing::Ready;
                    self.end_lease(position, lease);
                    if let Some(line) = self.keys.get_mut(key) {
                        line.outstanding = line.outstanding.saturating_sub(1);
                    }
                }
                Standing::Acked => entry.standing = Standing::Ready,
                Standing::Ready | Standing::Scheduled(_) | Standing::Forwarding => {}
            }
        }
        if let Some(line) = self.keys.get_mut(key) {
            line.delivered = line.delivered.min(index);
            if line.outstanding == 0 {
                line.owner = None;
            }
        }
        self.offer(key);
    }
}

#[cfg(test)]
mod tests {
    use crate::state::fixture::{Bench, data, rules};

    fn ordered() -> Bench {
        let mut rules = rules();
        rules.ordered = true;
        Bench::new(rules)
    }

    #[test]
    fn a_key_goes_out_in_order_and_stays_with_one_receiver() {
        let mut bench = ordered();
        bench.publish(&[("k", "1"), ("k", "2"), ("j", "a")]);
        let got = bench.take();
        assert_eq!(data(&got), ["1", "a", "2"].map(String::from).as_slice().to_vec().sorted());
        bench.publish(&[("k", "3")]);
        assert!(bench.take_by(2).is_empty(), "another receiver must not get the key");
        assert_eq!(data(&bench.take()), ["3"]);
    }

    trait Sorted {
        fn sorted(self) -> Self;
    }
    impl Sorted for Vec<String> {
        fn sorted(mut self) -> Self {
            self.sort_by_key(|s| ["1", "2", "a"].iter().position(|x| x == s));
            self
        }
    }

    #[test]
    fn a_nack_brings_back_later_messages_even_acknowledged_ones() {
        let mut bench = ordered();
        bench.publish(&[("k", "1"), ("k", "2"), ("k", "3"), ("k", "4")]);
        let got = bench.take();
        assert_eq!(data(&got), ["1", "2", "3", "4"]);
        assert!(bench.ack(&got[2]).settled.is_empty(), "an earlier message is still out");
        assert_eq!(bench.ack(&got[0]).settled.len(), 1);
        bench.nack(&got[1]);
        assert_eq!(bench.queue.leased(), 0);
        let again = bench.take_by(2);
        assert_eq!(data(&again), ["2", "3", "4"]);
        assert_eq!(again.iter().map(|d| d.attempt).collect::<Vec<_>>(), [2, 1, 1]);
        for delivery in &again {
            bench.ack(delivery);
        }
        assert_eq!(bench.queue.unacked(), 0);
    }

    #[test]
    fn a_backoff_holds_the_whole_key_and_no_other() {
        let mut rules = rules();
        rules.ordered = true;
        rules.retry = Some(crate::state::RetryBackoff {
            minimum: std::time::Duration::from_secs(5),
            maximum: std::time::Duration::from_secs(50),
        });
        let mut bench = Bench::new(rules);
        bench.publish(&[("k", "1"), ("k", "2")]);
        let got = bench.take();
        bench.nack(&got[0]);
        bench.publish(&[("j", "a")]);
        assert_eq!(data(&bench.take()), ["a"]);
        bench.advance(std::time::Duration::from_secs(6));
        assert_eq!(data(&bench.take()), ["1", "2"]);
    }

    #[test]
    fn keys_of_a_closed_receiver_move_on_after_expiry() {
        let mut bench = ordered();
        bench.publish(&[("k", "1"), ("k", "2")]);
        assert_eq!(bench.take().len(), 2);
        bench.queue.close(1);
        bench.publish(&[("k", "3")]);
        assert!(bench.take_by(2).is_empty());
        bench.advance(std::time::Duration::from_secs(11));
        assert_eq!(data(&bench.take_by(2)), ["1", "2", "3"]);
    }
}
