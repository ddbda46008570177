//! Wire shapes of the hot paths. A message is encoded once, when it is accepted; deliveries splice those
//! bytes into the response, because a `bytes` field and a nested message look the same on the wire.

use bytes::{Bytes, BytesMut};
use googleapis_tonic_google_pubsub_v1::google::pubsub::v1 as pb;
use prost::Message;
use std::sync::Arc;

/// `google.pubsub.v1.ReceivedMessage` with the message left encoded.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct RawReceivedMessage {
    #[prost(string, tag = "1")]
    pub(crate) ack_id: String,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) message: Bytes,
    #[prost(int32, tag = "3")]
    pub(crate) delivery_attempt: i32,
}

/// `google.pubsub.v1.PullResponse` over raw messages.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct RawPullResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) received_messages: Vec<RawReceivedMessage>,
}

/// `google.pubsub.v1.StreamingPullResponse` over raw messages.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct RawStreamingPullResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) received_messages: Vec<RawReceivedMessage>,
    #[prost(message, optional, tag = "3")]
    pub(crate) modify_ack_deadline_confirmation:
        Option<pb::streaming_pull_response::ModifyAckDeadlineConfirmation>,
    #[prost(message, optional, tag = "4")]
    pub(crate) subscription_properties: Option<pb::streaming_pull_response::SubscriptionProperties>,
    #[prost(message, optional, tag = "5")]
    pub(crate) acknowledge_confirmation: Option<pb::streaming_pull_response::AcknowledgeConfirmation>,
}

/// An accepted message, shared by every subscription that holds it.
#[derive(Debug)]
pub(crate) struct Stored {
    /// The encoded `PubsubMessage`, id and publish time included.
    pub(crate) wire: Bytes,
    pub(crate) ordering_key: Option<Arc<str>>,
    /// Unix time in nanoseconds.
    pub(crate) published: i64,
}

impl Stored {
    /// Encodes `message` at the end of `buffer` and keeps that slice.
    pub(crate) fn encode(message: &pb::PubsubMessage, buffer: &mut BytesMut) -> Self {
        message.encode_raw(buffer);
        Self::of(message, buffer.split().freeze())
    }

    /// Reads an encoded message back, for replay.
    pub(crate) fn decode(wire: Bytes) -> Result<Self, prost::DecodeError> {
        let message = pb::PubsubMessage::decode(wire.clone())?;
        Ok(Self::of(&message, wire))
    }

    fn of(message: &pb::PubsubMessage, wire: Bytes) -> Self {
        Self {
            wire,
            ordering_key: (!message.ordering_key.is_empty())
                .then(|| Arc::from(message.ordering_key.as_str())),
            published: message.publish_time.as_ref().map_or(0, unix_nanos),
        }
    }
}

/// Unix time in nanoseconds of a protocol timestamp.
pub(crate) fn unix_nanos(at: &prost_types::Timestamp) -> i64 {
    at.seconds.saturating_mul(1_000_000_000).saturating_add(i64::from(at.nanos))
}

/// Protocol timestamp of a Unix time in nanoseconds.
pub(crate) fn timestamp(nanos: i64) -> prost_types::Timestamp {
    prost_types::Timestamp {
        seconds: nanos.div_euclid(1_000_000_000),
        nanos: i32::try_from(nanos.rem_euclid(1_000_000_000)).unwrap_or_default(),
    }
}

/// The wall clock, as Unix time in nanoseconds.
#[expect(clippy::disallowed_methods, reason = "publish time is the broker's own wall clock")]
pub(crate) fn now_nanos() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
