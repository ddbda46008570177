//! Seeking a subscription to a time or a snapshot.

use super::Broker;
use super::subscription::{Subscription, SubscriptionState};
use crate::filter::Filter;
use crate::persist::{self, Kind};
use crate::wire::Stored;
use googleapis_tonic_google_pubsub_v1::google::pubsub::v1 as pb;
use prost::Message;
use std::collections::BTreeMap;
use std::sync::Arc;
use tonic::Status;

/// Where to seek to.
#[derive(Debug, Clone)]
pub(crate) enum SeekTo {
    /// Unix time in nanoseconds: earlier messages become acknowledged, later ones unacknowledged.
    Time(i64),
    /// Name of a snapshot of the same topic.
    Snapshot(String),
}

impl Broker {
    /// Seeks; every outstanding lease ends.
    pub(crate) fn seek(&self, name: &str, to: SeekTo) -> Result<(), Status> {
        let subscription = self.subscription(name)?;
        let topic_name = subscription.config().topic;
        let restored = match &to {
            SeekTo::Time(_) => None,
            SeekTo::Snapshot(snapshot) => {
                let snapshot = self.snapshot(snapshot)?;
                if snapshot.config.lock().topic != topic_name {
                    return Err(Status::failed_precondition(
                        "snapshot: belongs to another topic than the subscription",
                    ));
                }
                Some(snapshot)
            }
        };
        // The topic's lock keeps messages from being published between reading and resetting.
        let topic = self.topic(&topic_name).ok();
        let topic_state = topic.as_ref().map(|topic| topic.state.lock());
        let mut state = subscription.usable()?;
        state.forget_old();
        let mut known = state.queue.known();
        let passes = |stored: &Stored| matches(state.filter.as_ref(), stored);
        if let Some(topic) = &topic_state {
            for (position, stored) in topic.retained.iter().filter(|(_, stored)| passes(stored)) {
                known.entry(*position).or_insert_with(|| (Arc::clone(stored), 0));
            }
        }
        if let Some(snapshot) = &restored {
            for (position, stored) in snapshot.messages.lock().iter().filter(|(_, stored)| passes(stored)) {
                known.entry(*position).or_insert_with(|| (Arc::clone(stored), 0));
            }
        }
        let (mut unacked, mut acked) = (BTreeMap::new(), BTreeMap::new());
        let held = restored.as_ref().map(|snapshot| snapshot.messages.lock());
        for (position, (stored, failures)) in known {
            let wanted = match (&to, &held) {
                (SeekTo::Time(time), _) => stored.published >= *time,
                (SeekTo::Snapshot(_), Some(held)) => held.contains_key(&position),
                (SeekTo::Snapshot(_), None) => false,
            };
            if wanted {
                unacked.insert(position, (stored, failures));
            } else {
                acked.insert(position, stored);
            }
        }
        drop(held);
        state.queue.reset(unacked, acked);
        self.write_backlog(&subscription, &state)?;
        subscription.rearm(&mut state);
        Ok(())
    }

    fn write_backlog(&self, subscription: &Subscription, state: &SubscriptionState) -> Result<(), Status> {
        self.persist(|| Kind::Backlog(backlog(&subscription.name, state)))
    }
}

/// The journal's record of a subscription's whole state.
pub(super) fn backlog(name: &str, state: &SubscriptionState) -> persist::Backlog {
    let (unacked, failures) =
        state.queue.backlog().into_iter().map(|(position, (_, failures))| (position, failures)).unzip();
    let retained = state.queue.retained().keys().copied().collect();
    persist::Backlog { subscription: name.to_owned(), unacked, failures, retained }
}

/// Whether a stored message passes a filter.
pub(super) fn matches(filter: Option<&Filter>, stored: &Stored) -> bool {
    let Some(filter) = filter else { return true };
    pb::PubsubMessage::decode(stored.wire.clone()).is_ok_and(|message| filter.matches(&message.attributes))
}
