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
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The broker's id of one accepted publication; a second publication of the same event has another.
pub type MessageId = String;

/// Something to publish. Asked once per attempt, so that nothing is copied for a repetition that seldom comes.
pub trait Outgoing: Sync {
    /// Attributes, sent as they are. The same at every call.
    fn attributes(&self) -> HashMap<String, String>;
    /// Payload bytes, sent as they are. The same at every call.
    fn data(&self) -> Bytes;
}

type Answer = Result<MessageId, PublishError>;
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
    pub async fn publish_batch<O: Outgoing>(
        &self,
        topic: &str,
        ordering_key: Option<&str>,
        batch: &[O],
    ) -> Vec<Result<MessageId, PublishError>> {
        let key = ordering_key.unwrap_or_default();
        let slot = self.inner.lanes.slot(topic, key);
        let mut slot = slot.lock().await;
        let mut answers: Vec<Answer> = batch.iter().map(|_| Err(PublishError::NotSent)).collect();
        // Ranges still to send, the next one last.
        let mut ranges: Vec<_> = std::iter::once(0..batch.len()).collect();
        while let Some(range) = ranges.pop() {
            let (request, rest) = Request::fill(batch, range, key, &mut answers);
            ranges.extend(rest);
            if request.places.is_empty() {
                continue;
            }
            let places = request.places.clone();
            let results = self.send(&mut slot, topic, key, request).await;
            let refused = results.iter().any(|result| matches!(result, Err(PublishError::Refused { .. })));
            if refused && places.len() > 1 {
                // One request has one answer for all of its entries: halve it until the guilty one stands alone.
                let (first, last) = (places[0], places[places.len() - 1]);
                let middle = places[places.len() / 2];
                ranges.extend([middle..last + 1, first..middle]);
                continue;
            }
            let outage = results.iter().any(|result| matches!(result, Err(PublishError::Outage { .. })));
            for (place, result) in places.into_iter().zip(results) {
                answers[place] = result;
            }
            if outage {
                break;
            }
        }
        answers
    }

    /// Sends one request and waits for its answer.
    async fn send(
        &self,
        slot: &mut Option<Publisher>,
        topic: &str,
        key: &str,
        request: Request,
    ) -> Vec<Answer> {
        let publisher = slot.get_or_insert_with(|| self.publisher(topic)).clone();
        backline_crash_point::reach("broker.publish.before");
        let count = request.places.len();
        let futures: Vec<_> =
            request.messages.into_iter().map(|message| publisher.publish(message)).collect();
        let answered = async {
            // Sends what has gathered at once instead of lingering, and returns when all of it has an answer.
            publisher.flush().await;
            let mut results = Vec::with_capacity(count);
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
            return (0..count).map(|_| Err(PublishError::timeout(limit.as_secs_f64()))).collect();
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

/// What goes out together.
#[derive(Default)]
struct Request {
    messages: Vec<Message>,
    /// Where in the batch each of them stands.
    places: Vec<usize>,
}

impl Request {
    /// Takes from `range` what fits one request, and says what is left. Answers for what may never be sent.
    fn fill<O: Outgoing>(
        batch: &[O],
        range: Range<usize>,
        key: &str,
        answers: &mut [Answer],
    ) -> (Self, Option<Range<usize>>) {
        let mut request = Self::default();
        let mut room = size::Room::default();
        for at in range.clone() {
            let (attributes, data) = (batch[at].attributes(), batch[at].data());
            match size::check(&attributes, &data, key) {
                Ok(bytes) if !room.take(bytes) => return (request, Some(at..range.end)),
                Ok(_) => {
                    let message =
                        Message::new().set_data(data).set_attributes(attributes).set_ordering_key(key);
                    request.messages.push(message);
                    request.places.push(at);
                }
                Err(refused) => answers[at] = Err(refused),
            }
        }
        (request, None)
    }
}
