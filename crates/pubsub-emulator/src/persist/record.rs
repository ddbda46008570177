//! Records of the journal. Positions number accepted messages across all topics.

use bytes::Bytes;
use googleapis_tonic_google_pubsub_v1::google::pubsub::v1 as pb;
use prost::{Message, Oneof};

pub(crate) use change::Kind;

/// One change.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Record {
    #[prost(oneof = "change::Kind", tags = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13")]
    pub(crate) kind: Option<Kind>,
}

/// The kinds of change.
pub(crate) mod change {
    use super::{
        Acked, Backlog, Counters, Failed, MessageRecord, Oneof, Published, SnapshotRecord,
        SubscriptionRecord, TopicRetained, pb,
    };

    #[derive(Clone, PartialEq, Oneof)]
    #[expect(clippy::large_enum_variant, reason = "a record lives as long as its encoding takes")]
    pub(crate) enum Kind {
        #[prost(message, tag = "1")]
        Counters(Counters),
        #[prost(message, tag = "2")]
        Topic(pb::Topic),
        #[prost(string, tag = "3")]
        TopicDelete(String),
        #[prost(message, tag = "4")]
        Subscription(SubscriptionRecord),
        #[prost(string, tag = "5")]
        SubscriptionDelete(String),
        #[prost(message, tag = "6")]
        Published(Published),
        #[prost(message, tag = "7")]
        Acked(Acked),
        #[prost(message, tag = "8")]
        Failed(Failed),
        #[prost(message, tag = "9")]
        Backlog(Backlog),
        #[prost(message, tag = "10")]
        Snapshot(SnapshotRecord),
        #[prost(string, tag = "11")]
        SnapshotDelete(String),
        #[prost(message, tag = "12")]
        Message(MessageRecord),
        #[prost(message, tag = "13")]
        TopicRetained(TopicRetained),
    }
}

/// The next numbers to hand out.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct Counters {
    #[prost(uint64, tag = "1")]
    pub(crate) message_id: u64,
    #[prost(uint64, tag = "2")]
    pub(crate) position: u64,
    #[prost(uint64, tag = "3")]
    pub(crate) subscription: u64,
}

/// A subscription was created or changed.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct SubscriptionRecord {
    #[prost(message, optional, tag = "1")]
    pub(crate) config: Option<pb::Subscription>,
    #[prost(uint64, tag = "2")]
    pub(crate) id: u64,
}

/// Messages were accepted; they have consecutive positions.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Published {
    #[prost(string, tag = "1")]
    pub(crate) topic: String,
    #[prost(uint64, tag = "2")]
    pub(crate) first_position: u64,
    #[prost(bytes = "bytes", repeated, tag = "3")]
    pub(crate) messages: Vec<Bytes>,
    /// First message id not handed out yet.
    #[prost(uint64, tag = "4")]
    pub(crate) next_message_id: u64,
}

/// Messages are done in a subscription.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct Acked {
    #[prost(string, tag = "1")]
    pub(crate) subscription: String,
    #[prost(uint64, repeated, tag = "2")]
    pub(crate) positions: Vec<u64>,
}

/// Messages failed in a subscription; counts go with positions.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct Failed {
    #[prost(string, tag = "1")]
    pub(crate) subscription: String,
    #[prost(uint64, repeated, tag = "2")]
    pub(crate) positions: Vec<u64>,
    #[prost(uint32, repeated, tag = "3")]
    pub(crate) failures: Vec<u32>,
}

/// The whole state of a subscription, after a seek or compaction.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct Backlog {
    #[prost(string, tag = "1")]
    pub(crate) subscription: String,
    #[prost(uint64, repeated, tag = "2")]
    pub(crate) unacked: Vec<u64>,
    #[prost(uint32, repeated, tag = "3")]
    pub(crate) failures: Vec<u32>,
    #[prost(uint64, repeated, tag = "4")]
    pub(crate) retained: Vec<u64>,
}

/// A snapshot and the messages it holds.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct SnapshotRecord {
    #[prost(message, optional, tag = "1")]
    pub(crate) config: Option<pb::Snapshot>,
    #[prost(uint64, repeated, tag = "2")]
    pub(crate) positions: Vec<u64>,
}

/// A message that later records refer to.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct MessageRecord {
    #[prost(uint64, tag = "1")]
    pub(crate) position: u64,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) wire: Bytes,
}

/// What a topic retains by its own retention.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct TopicRetained {
    #[prost(string, tag = "1")]
    pub(crate) topic: String,
    #[prost(uint64, repeated, tag = "2")]
    pub(crate) positions: Vec<u64>,
}
