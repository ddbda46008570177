//! Publishing.
//!
//! Google's `Publisher` batches by time and size, keeps one task per ordering key for ever, and after a failure
//! refuses a key until it is resumed. Here one call is one batch of one key: every key has a `Publisher` of its own, so
//! that `flush` waits for nobody else, and the number of keys must be bounded (the outbox's lanes are).

use crate::connect::Broker;
use crate::error::PublishError;
use crate::size;
use bytes::Bytes;
use google_cloud_pubsub::client::Publisher;
use google_cloud_pubsub::model::Message;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The broker's id of one accepted publication; a second publication of the same event has another.
pub type MessageId = String;

/// One entry to publish.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// Attributes, sent as they are.
    pub attributes: HashMap<String, String>,
    /// Payload bytes, sent as they are.
    pub data: Bytes,
}

type Key = (String, String);
/// One call at a time per key; `None` until first used and after a time-out.
type Slot = Arc<tokio::sync::Mutex<Option<Publisher>>>;

#[derive(Debug, Default)]
pub(crate) struct Lanes {
    slots: Mutex<HashMap<Key, Slot>>,
}

impl Lanes {
    fn slot(&self, topic: &str, key: &str) -> Slot {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(slots.entry((topic.to_owned(), key.to_owned())).or_default())
    }
}

impl Broker {
    /// Publishes entries in order and answers for each, in the same order.
    ///
    /// `topic` is a topic id. With an `ordering_key` (at most a few hundred different ones per process), nothing is
    /// sent after a failure other than a refusal, so that the order of what was accepted is the order given. A
    /// refused entry is isolated from its neighbors, which go out.
    ///
    /// A confirmation is the only proof: every other answer means "publish the same bytes again".
    pub async fn publish_batch(
        &self,
        topic: &str,
        ordering_key: Option<&str>,
        batch: Vec<Outgoing>,
    ) -> Vec<Result<MessageId, PublishError>> {
        let key = ordering_key.unwrap_or_default();
        let slot = self.inner.lanes.slot(topic, key);
        let mut slot = slot.lock().await;
        let mut answers: Vec<Result<MessageId, PublishError>> = Vec::with_capacity(batch.len());
        let mut sizes = Vec::with_capacity(batch.len());
        let mut fitting = Vec::with_capacity(batch.len());
        for outgoing in batch {
            match size::check(&outgoing, key) {
                Ok(()) => {
                    sizes.push(size::encoded_bytes(&outgoing, key));
                    fitting.push((answers.len(), outgoing));
                    answers.push(Err(PublishError::NotSent));
                }
                Err(refused) => answers.push(Err(refused)),
            }
        }
        // Requests still to send, the next one last.
        let mut requests = size::chunks(&sizes);
        requests.reverse();
        while let Some(range) = requests.pop() {
            let results = self.publish_request(&mut slot, topic, key, &fitting[range.clone()]).await;
            let refused = results.iter().any(|r| matches!(r, Err(PublishError::Refused { .. })));
            if refused && range.len() > 1 {
                // One request has one answer for all of its entries: halve it until the guilty one stands alone.
                let middle = range.start + range.len() / 2;
                requests.extend([middle..range.end, range.start..middle]);
                continue;
            }
            let outage = results.iter().any(|r| matches!(r, Err(PublishError::Outage { .. })));
            store(&mut answers, &fitting[range], results);
            if outage {
                break;
            }
        }
        answers
    }

    /// Sends one request and waits for its answer.
    async fn publish_request(
        &self,
        slot: &mut Option<Publisher>,
        topic: &str,
        key: &str,
        entries: &[(usize, Outgoing)],
    ) -> Vec<Result<MessageId, PublishError>> {
        let publisher = slot.get_or_insert_with(|| self.publisher(topic)).clone();
        backline_crash_point::reach("broker.publish.before");
        let futures: Vec<_> = entries
            .iter()
            .map(|(_, outgoing)| {
                let message = Message::new()
                    .set_data(outgoing.data.clone())
                    .set_attributes(outgoing.attributes.clone())
                    .set_ordering_key(key);
                publisher.publish(message)
            })
            .collect();
        let answered = async {
            // Sends what has gathered at once instead of lingering, and returns when all of it has an answer.
            publisher.flush().await;
            let mut results = Vec::with_capacity(futures.len());
            for future in futures {
                results.push(future.await.map_err(|error| PublishError::classify(&error)));
            }
            results
        };
        // The client's own limit should fire first; this one covers a client that hangs.
        let limit = self.inner.config.publish_timeout + Duration::from_secs(1);
        let Ok(results) = tokio::time::timeout(limit, answered).await else {
            // What still sits in that publisher may be sent late: a repeat, which readers sort out by event id.
            *slot = None;
            return entries.iter().map(|_| Err(PublishError::timeout(limit.as_secs_f64()))).collect();
        };
        backline_crash_point::reach("broker.publish.after");
        if results.iter().any(Result::is_err) && !key.is_empty() {
            publisher.resume_publish(key);
        }
        results
    }

    fn publisher(&self, topic: &str) -> Publisher {
        self.inner
            .publisher
            .publisher(self.topic_name(topic))
            .set_message_count_threshold(1000_u32)
            .set_byte_threshold(10_000_000_u32)
            // Long enough that only `flush` sends: a timer in the middle of a batch would split it.
            .set_delay_threshold(Duration::from_secs(1))
            .build()
    }
}

fn store(
    answers: &mut [Result<MessageId, PublishError>],
    entries: &[(usize, Outgoing)],
    results: Vec<Result<MessageId, PublishError>>,
) {
    for ((at, _), result) in entries.iter().zip(results) {
        answers[*at] = result;
    }
}
