//! One arrival of an entry.

use bytes::Bytes;
use google_cloud_pubsub::model::Message;
use google_cloud_pubsub::subscriber::handler::Handler;
use std::collections::HashMap;
use std::fmt;
use time::OffsetDateTime;
use tokio::sync::OwnedSemaphorePermit;

/// One arrival of an entry from the broker; may repeat, may be late.
///
/// Its lease is extended for as long as this value lives. Dropping it returns it to the broker ([`Delivery::nack`]),
/// which is what a panic or an early return should do.
pub struct Delivery {
    /// Attributes as received.
    pub attributes: HashMap<String, String>,
    /// Payload bytes as received.
    pub data: Bytes,
    /// When the broker accepted this publication, by its clock.
    pub publish_time: Option<OffsetDateTime>,
    /// The broker's id of this publication; not an identity of the event.
    pub message_id: String,
    /// Ordering key, empty when none was given.
    pub ordering_key: String,
    /// The broker's approximate count; absent without a dead-letter policy. Never decide by it.
    pub delivery_attempt: Option<i32>,
    /// Taken when settled.
    handler: Option<Handler>,
    _capacity: Capacity,
}

/// Room in the subscription's limits, given back when the delivery is settled.
pub(crate) struct Capacity {
    pub(crate) _messages: OwnedSemaphorePermit,
    pub(crate) _bytes: OwnedSemaphorePermit,
}

impl Delivery {
    pub(crate) fn new(message: Message, handler: Handler, capacity: Capacity) -> Self {
        Self {
            attributes: message.attributes,
            data: message.data,
            publish_time: message.publish_time.and_then(|t| {
                let nanos = i128::from(t.seconds()) * 1_000_000_000 + i128::from(t.nanos());
                OffsetDateTime::from_unix_timestamp_nanos(nanos).ok()
            }),
            message_id: message.message_id,
            ordering_key: message.ordering_key,
            delivery_attempt: handler.delivery_attempt(),
            // Acknowledged on arrival, before anything is durable.
            handler: if backline_crash_point::seeded_bug(8) {
                handler.ack();
                None
            } else {
                Some(handler)
            },
            _capacity: capacity,
        }
    }

    /// Says that the work this delivery asked for is durable here. The client sends acknowledgements in batches and
    /// without an answer; a lost one means one more delivery.
    pub fn ack(self) {
        backline_crash_point::reach("broker.ack.before");
        if let Some(handler) = self.handler {
            handler.ack();
        }
        backline_crash_point::reach("broker.ack.after");
    }

    /// Gives the delivery back; it comes again after the subscription's retry delay, with everything behind it of the
    /// same ordering key.
    pub fn nack(self) {
        if let Some(handler) = self.handler {
            handler.nack();
        }
    }
}

impl fmt::Debug for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // No attribute values and no data: subjects and payloads do not belong in logs.
        f.debug_struct("Delivery")
            .field("message_id", &self.message_id)
            .field("bytes", &self.data.len())
            .field("delivery_attempt", &self.delivery_attempt)
            .finish_non_exhaustive()
    }
}
