//! Publishing: number, encode, write down, hand to every subscription.

use super::{Broker, Topic};
use crate::faults::PublishMode;
use crate::limits;
use crate::log::Accepted;
use crate::persist::{Kind, Published};
use crate::wire::{Stored, now_nanos, timestamp};
use bytes::BytesMut;
use googleapis_tonic_google_pubsub_v1::google::pubsub::v1 as pb;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;
use tonic::Status;

/// Batches above this are encoded message by message, so that one unacknowledged message does not keep
/// megabytes of acknowledged neighbors in memory.
const SHARED_BUFFER_BYTES: usize = 1024 * 1024;

/// A message ready to be handed out.
struct Prepared {
    stored: Arc<Stored>,
    attributes: Arc<BTreeMap<String, String>>,
    delay: Option<Duration>,
}

/// A batch encoded and hashed before any lock is taken.
struct Batch {
    ids: Vec<String>,
    prepared: Vec<Prepared>,
    accepted: Vec<Accepted>,
}

impl Broker {
    /// Publishes a client's messages; returns their ids in order.
    pub(crate) fn publish(
        &self,
        topic: &str,
        messages: Vec<pb::PubsubMessage>,
    ) -> Result<Vec<String>, Status> {
        let topic = self.topic(topic)?;
        limits::publish(&messages)?;
        let key = messages.first().map(|m| m.ordering_key.clone()).unwrap_or_default();
        let fault = self.faults.publish(&topic.name, &key);
        if let Some((PublishMode::Refuse, status)) = fault {
            return Err(status);
        }
        let ids = self.accept(&topic, messages)?;
        self.stats.publish_requests.add(1);
        match fault {
            Some((_, status)) => Err(status),
            None => Ok(ids),
        }
    }

    /// Accepts messages as they are; dead letters come in here.
    pub(super) fn accept(
        &self,
        topic: &Topic,
        messages: Vec<pb::PubsubMessage>,
    ) -> Result<Vec<String>, Status> {
        let batch = self.prepare(topic, messages);
        self.hand_out(topic, &batch.prepared)?;
        self.stats.messages_accepted.add(batch.ids.len() as u64);
        if self.log.enabled() {
            self.log.append(batch.accepted);
        }
        Ok(batch.ids)
    }

    fn prepare(&self, topic: &Topic, messages: Vec<pb::PubsubMessage>) -> Batch {
        use prost::Message;
        let first = Self::next(&self.next_message_id, messages.len());
        let published = timestamp(now_nanos());
        let total: usize = messages.iter().map(|m| m.encoded_len() + 48).sum();
        let shared = total <= SHARED_BUFFER_BYTES;
        let mut wires = BytesMut::with_capacity(if shared { total } else { 0 });
        let mut heads = BytesMut::new();
        let mut batch = Batch { ids: Vec::new(), prepared: Vec::new(), accepted: Vec::new() };
        for (id, mut message) in (first..).zip(messages) {
            message.message_id = id.to_string();
            message.publish_time = Some(published);
            batch.ids.push(message.message_id.clone());
            if !shared {
                wires = BytesMut::with_capacity(message.encoded_len());
            }
            let stored = Arc::new(Stored::encode(&message, &mut wires));
            let mut copies = vec![Arc::clone(&stored)];
            if let Some((count, new_id)) = self.faults.copies(&topic.name) {
                for _ in 0..count {
                    copies.push(if new_id { self.renumbered(&message) } else { Arc::clone(&stored) });
                }
            }
            if self.log.enabled() {
                let deliveries = u32::try_from(copies.len()).unwrap_or(u32::MAX);
                batch.accepted.push(Accepted::of(&topic.name, &mut message, deliveries, &mut heads));
            }
            let attributes = Arc::new(message.attributes);
            for stored in copies {
                let delay = self.faults.delay(&topic.name);
                batch.prepared.push(Prepared { stored, attributes: Arc::clone(&attributes), delay });
            }
        }
        batch
    }

    fn renumbered(&self, message: &pb::PubsubMessage) -> Arc<Stored> {
        let mut copy = message.clone();
        copy.message_id = Self::next(&self.next_message_id, 1).to_string();
        Arc::new(Stored::encode(&copy, &mut BytesMut::new()))
    }

    fn hand_out(&self, topic: &Topic, prepared: &[Prepared]) -> Result<(), Status> {
        let now = Instant::now();
        let mut state = topic.state.lock();
        if state.deleted {
            return Err(super::missing("topic", &topic.name));
        }
        let retains = state.config.message_retention_duration.is_some();
        if state.subscriptions.is_empty() && state.snapshots.is_empty() && !retains {
            return Ok(());
        }
        let first = Self::next(&self.next_position, prepared.len());
        self.persist(|| {
            Kind::Published(Published {
                topic: topic.name.to_string(),
                first_position: first,
                messages: prepared.iter().map(|p| p.stored.wire.clone()).collect(),
                next_message_id: self.next_message_id.load(Ordering::Relaxed),
            })
        })?;
        for subscription in &state.subscriptions {
            let mut held = subscription.state.lock();
            for (position, message) in (first..).zip(prepared) {
                if held.filter.as_ref().is_none_or(|filter| filter.matches(&message.attributes)) {
                    let not_before = message.delay.map(|delay| now + delay);
                    held.queue.push(position, Arc::clone(&message.stored), not_before);
                }
            }
            held.forget_old();
            held.queue.wake_receivers();
            subscription.rearm(&mut held);
        }
        for snapshot in &state.snapshots {
            let new = (first..).zip(prepared).map(|(position, p)| (position, Arc::clone(&p.stored)));
            snapshot.messages.lock().extend(new);
        }
        if retains {
            let new = (first..).zip(prepared).map(|(position, p)| (position, Arc::clone(&p.stored)));
            state.retained.extend(new);
            state.forget_old();
        }
        Ok(())
    }
}
