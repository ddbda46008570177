//! A subscription with one receiver, for tests of the rules.

use super::{AckId, Capacity, Delivery, Effects, Queue, Rules};
use crate::wire::Stored;
use bytes::BytesMut;
use googleapis_tonic_google_pubsub_v1::google::pubsub::v1 as pb;
use prost::Message;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

pub(crate) struct Bench {
    pub(crate) queue: Queue,
    pub(crate) now: Instant,
    next: u64,
}

pub(crate) fn rules() -> Rules {
    Rules::default()
}

pub(crate) fn data(deliveries: &[Delivery]) -> Vec<String> {
    deliveries
        .iter()
        .map(|d| {
            let message = pb::PubsubMessage::decode(d.stored.wire.clone()).unwrap_or_default();
            String::from_utf8_lossy(&message.data).into_owned()
        })
        .collect()
}

impl Bench {
    pub(crate) fn new(rules: Rules) -> Self {
        let mut queue = Queue::new(rules, 1);
        for stream in [1, 2] {
            queue.open(stream, Self::capacity(), Arc::new(Notify::new()));
        }
        Self { queue, now: Instant::now(), next: 1 }
    }

    fn capacity() -> Capacity {
        Capacity { messages: usize::MAX, bytes: usize::MAX, deadline: Duration::from_secs(10), shares: false }
    }

    /// Publishes (ordering key, data) pairs.
    pub(crate) fn publish(&mut self, messages: &[(&str, &str)]) {
        for (key, data) in messages {
            let message = pb::PubsubMessage {
                data: data.as_bytes().to_vec().into(),
                ordering_key: (*key).to_owned(),
                ..Default::default()
            };
            let stored = Stored::encode(&message, &mut BytesMut::new());
            self.queue.push(self.next, Arc::new(stored), None);
            self.next += 1;
        }
    }

    pub(crate) fn take(&mut self) -> Vec<Delivery> {
        self.take_by(1)
    }

    pub(crate) fn take_by(&mut self, stream: u64) -> Vec<Delivery> {
        self.queue.take(stream, self.now, |_| 0)
    }

    fn id(delivery: &Delivery) -> AckId {
        AckId { subscription: 0, position: delivery.position, lease: delivery.lease }
    }

    pub(crate) fn ack(&mut self, delivery: &Delivery) -> Effects {
        let mut effects = Effects::default();
        self.queue.ack(Self::id(delivery), &mut effects);
        effects
    }

    pub(crate) fn nack(&mut self, delivery: &Delivery) -> Effects {
        let mut effects = Effects::default();
        self.queue.extend(Self::id(delivery), Duration::ZERO, self.now, &mut effects);
        effects
    }

    pub(crate) fn advance(&mut self, by: Duration) -> Effects {
        self.now += by;
        let mut effects = Effects::default();
        self.queue.expire(self.now, &mut effects);
        self.queue.release_due(self.now);
        effects
    }
}
