//! From the journal to the broker at start, and back to a compact journal.

use super::seek::{backlog, matches};
use super::snapshots::Snapshot;
use super::subscription::Subscription;
use super::subscription_rules::rules;
use super::topics::Topic;
use super::{Broker, DELETED_TOPIC};
use crate::persist::Kind;
use crate::persist::{
    self, Counters, MessageRecord, Published, SnapshotRecord, SubscriptionRecord, TopicRetained,
};
use crate::wire::Stored;
use anyhow::{Context, Result};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Messages that records refer to.
type Known = BTreeMap<u64, Arc<Stored>>;

impl Broker {
    /// Applies the journal's records to an empty broker. What was deleted may be named by a record that
    /// raced with the deletion; such records change nothing.
    pub(super) fn replay(&mut self, records: Vec<Kind>) -> Result<()> {
        let mut known = Known::new();
        for kind in records {
            match kind {
                Kind::Counters(counters) => {
                    self.next_message_id.fetch_max(counters.message_id, Ordering::Relaxed);
                    self.next_position.fetch_max(counters.position, Ordering::Relaxed);
                    self.next_subscription.fetch_max(counters.subscription, Ordering::Relaxed);
                }
                Kind::Message(message) => {
                    known.insert(message.position, Arc::new(Stored::decode(message.wire)?));
                }
                Kind::Topic(config) => match self.topics.get_mut().get(&config.name) {
                    Some(topic) => topic.state.lock().config = config,
                    None => {
                        self.topics.get_mut().insert(config.name.clone(), Arc::new(Topic::new(config)));
                    }
                },
                Kind::TopicDelete(name) => {
                    self.delete_topic(&name)?;
                }
                Kind::TopicRetained(retained) => {
                    let topic = self.topic(&retained.topic)?;
                    topic.state.lock().retained = pick(&known, &retained.positions);
                }
                Kind::Subscription(record) => self.replay_subscription(record)?,
                Kind::SubscriptionDelete(name) => self.delete_subscription(&name)?,
                Kind::Published(published) => self.replay_published(published, &mut known)?,
                Kind::Acked(acked) => {
                    let Ok(subscription) = self.subscription(&acked.subscription) else { continue };
                    let mut state = subscription.state.lock();
                    acked.positions.into_iter().for_each(|position| state.queue.replay_settled(position));
                }
                Kind::Failed(failed) => {
                    let Ok(subscription) = self.subscription(&failed.subscription) else { continue };
                    let mut state = subscription.state.lock();
                    for (position, failures) in failed.positions.into_iter().zip(failed.failures) {
                        state.queue.replay_failed(position, failures);
                    }
                }
                Kind::Backlog(record) => self.replay_backlog(record, &known)?,
                Kind::Snapshot(record) => self.replay_snapshot(record, &known)?,
                Kind::SnapshotDelete(name) => self.delete_snapshot(&name)?,
            }
        }
        for subscription in self.subscriptions.get_mut().values() {
            let mut state = subscription.state.lock();
            let (unacked, retained) = (state.queue.backlog(), state.queue.retained().clone());
            state.queue.reset(unacked, retained);
        }
        Ok(())
    }

    fn replay_subscription(&mut self, record: SubscriptionRecord) -> Result<()> {
        let config = record.config.context("journal: subscription without settings")?;
        self.next_subscription.fetch_max(record.id + 1, Ordering::Relaxed);
        if let Some(known) = self.subscriptions.get_mut().get(&config.name) {
            let mut state = known.state.lock();
            if config.detached && !state.config.detached {
                state.queue.reset(BTreeMap::new(), BTreeMap::new());
            }
            state.queue.rules = rules(&config, self.config.retry_backoff_cap);
            state.config = config;
            return Ok(());
        }
        let (name, topic) = (config.name.clone(), config.topic.clone());
        let detached = config.detached || topic == DELETED_TOPIC;
        let subscription =
            Arc::new(Subscription::new(config, record.id, self.first_lease, self.config.retry_backoff_cap)?);
        if !detached {
            self.topic(&topic)?.state.lock().subscriptions.push(Arc::clone(&subscription));
        }
        self.subscriptions.get_mut().insert(name, subscription);
        Ok(())
    }

    fn replay_published(&mut self, published: Published, known: &mut Known) -> Result<()> {
        self.next_message_id.fetch_max(published.next_message_id, Ordering::Relaxed);
        let end = published.first_position + published.messages.len() as u64;
        self.next_position.fetch_max(end, Ordering::Relaxed);
        let Ok(topic) = self.topic(&published.topic) else { return Ok(()) };
        let mut state = topic.state.lock();
        for (position, wire) in (published.first_position..).zip(published.messages) {
            let stored = Arc::new(Stored::decode(wire)?);
            for subscription in &state.subscriptions {
                let mut held = subscription.state.lock();
                if !held.config.detached && matches(held.filter.as_ref(), &stored) {
                    held.queue.push(position, Arc::clone(&stored), None);
                }
            }
            for snapshot in &state.snapshots {
                snapshot.messages.lock().insert(position, Arc::clone(&stored));
            }
            if state.config.message_retention_duration.is_some() {
                state.retained.insert(position, Arc::clone(&stored));
            }
            known.insert(position, stored);
        }
        state.forget_old();
        Ok(())
    }

    fn replay_backlog(&mut self, record: persist::Backlog, known: &Known) -> Result<()> {
        let Ok(subscription) = self.subscription(&record.subscription) else { return Ok(()) };
        let counts = record.unacked.into_iter().zip(record.failures);
        let unacked = counts
            .filter_map(|(position, failures)| {
                Some((position, (Arc::clone(known.get(&position)?), failures)))
            })
            .collect();
        subscription.state.lock().queue.reset(unacked, pick(known, &record.retained));
        Ok(())
    }

    fn replay_snapshot(&mut self, record: SnapshotRecord, known: &Known) -> Result<()> {
        let config = record.config.context("journal: snapshot without settings")?;
        if let Some(snapshot) = self.snapshots.get_mut().get(&config.name) {
            *snapshot.config.lock() = config;
            return Ok(());
        }
        let (name, topic) = (config.name.clone(), config.topic.clone());
        let messages = Mutex::new(pick(known, &record.positions));
        let snapshot = Arc::new(Snapshot { config: Mutex::new(config), messages });
        if let Ok(topic) = self.topic(&topic) {
            topic.state.lock().snapshots.push(Arc::clone(&snapshot));
        }
        self.snapshots.get_mut().insert(name, snapshot);
        Ok(())
    }

    /// The records that make up the present state.
    pub(super) fn records(&self) -> Vec<Kind> {
        let mut messages = Known::new();
        let mut after = Vec::new();
        let mut records = vec![Kind::Counters(Counters {
            message_id: self.next_message_id.load(Ordering::Relaxed),
            position: self.next_position.load(Ordering::Relaxed),
            subscription: self.next_subscription.load(Ordering::Relaxed),
        })];
        for topic in self.topics.read().values() {
            let state = topic.state.lock();
            records.push(Kind::Topic(state.config.clone()));
            if !state.retained.is_empty() {
                let positions = state.retained.keys().copied().collect();
                after.push(Kind::TopicRetained(TopicRetained { topic: topic.name.to_string(), positions }));
                messages.extend(state.retained.iter().map(|(p, s)| (*p, Arc::clone(s))));
            }
        }
        for subscription in self.subscriptions.read().values() {
            let state = subscription.state.lock();
            let config = Some(state.config.clone());
            after.push(Kind::Subscription(SubscriptionRecord { config, id: subscription.id }));
            after.push(Kind::Backlog(backlog(&subscription.name, &state)));
            messages.extend(state.queue.known().into_iter().map(|(p, (s, _))| (p, s)));
        }
        for snapshot in self.snapshots.read().values() {
            after.push(Kind::Snapshot(snapshot.record()));
            messages.extend(snapshot.messages.lock().iter().map(|(p, s)| (*p, Arc::clone(s))));
        }
        let wires = messages.into_iter();
        records.extend(
            wires.map(|(position, stored)| {
                Kind::Message(MessageRecord { position, wire: stored.wire.clone() })
            }),
        );
        records.extend(after);
        records
    }
}

fn pick(known: &Known, positions: &[u64]) -> Known {
    positions.iter().filter_map(|p| Some((*p, Arc::clone(known.get(p)?)))).collect()
}
