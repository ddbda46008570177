//! JSON shapes of resources, as the service's REST interface spells them.

use super::json::{duration, timestamp};
use googleapis_tonic_google_pubsub_v1::google::pubsub::v1 as pb;
use prost_types::{Duration, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

type Labels = BTreeMap<String, String>;

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// `Topic`. Fields that the emulator neither uses nor keeps (schemas, ingestion) are ignored on input.
#[derive(Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Topic {
    name: String,
    #[serde(skip_serializing_if = "is_default")]
    labels: Labels,
    #[serde(skip_serializing_if = "is_default")]
    kms_key_name: String,
    #[serde(with = "duration", skip_serializing_if = "Option::is_none")]
    message_retention_duration: Option<Duration>,
    #[serde(skip_deserializing)]
    state: i32,
}

impl From<pb::Topic> for Topic {
    fn from(t: pb::Topic) -> Self {
        Self {
            name: t.name,
            labels: t.labels,
            kms_key_name: t.kms_key_name,
            message_retention_duration: t.message_retention_duration,
            state: t.state,
        }
    }
}

impl From<Topic> for pb::Topic {
    fn from(t: Topic) -> Self {
        Self {
            name: t.name,
            labels: t.labels,
            kms_key_name: t.kms_key_name,
            message_retention_duration: t.message_retention_duration,
            ..Self::default()
        }
    }
}

#[derive(Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct DeadLetterPolicy {
    dead_letter_topic: String,
    max_delivery_attempts: i32,
}

#[derive(Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct RetryPolicy {
    #[serde(with = "duration", skip_serializing_if = "Option::is_none")]
    minimum_backoff: Option<Duration>,
    #[serde(with = "duration", skip_serializing_if = "Option::is_none")]
    maximum_backoff: Option<Duration>,
}

#[derive(Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ExpirationPolicy {
    #[serde(with = "duration", skip_serializing_if = "Option::is_none")]
    ttl: Option<Duration>,
}

/// `PushConfig`, kept but not acted on.
#[derive(Serialize, Deserialize, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PushConfig {
    #[serde(skip_serializing_if = "is_default")]
    push_endpoint: String,
    #[serde(skip_serializing_if = "is_default")]
    attributes: Labels,
}

impl From<PushConfig> for pb::PushConfig {
    fn from(p: PushConfig) -> Self {
        Self { push_endpoint: p.push_endpoint, attributes: p.attributes, ..Self::default() }
    }
}

/// `Subscription`.
#[derive(Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Subscription {
    name: String,
    topic: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    push_config: Option<PushConfig>,
    ack_deadline_seconds: i32,
    #[serde(skip_serializing_if = "is_default")]
    retain_acked_messages: bool,
    #[serde(with = "duration", skip_serializing_if = "Option::is_none")]
    message_retention_duration: Option<Duration>,
    #[serde(skip_serializing_if = "is_default")]
    labels: Labels,
    #[serde(skip_serializing_if = "is_default")]
    enable_message_ordering: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    expiration_policy: Option<ExpirationPolicy>,
    #[serde(skip_serializing_if = "is_default")]
    filter: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    dead_letter_policy: Option<DeadLetterPolicy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_policy: Option<RetryPolicy>,
    #[serde(skip_serializing_if = "is_default")]
    detached: bool,
    #[serde(skip_serializing_if = "is_default")]
    enable_exactly_once_delivery: bool,
    #[serde(with = "duration", skip_serializing_if = "Option::is_none")]
    topic_message_retention_duration: Option<Duration>,
    #[serde(skip_deserializing)]
    state: i32,
}

impl From<pb::Subscription> for Subscription {
    fn from(s: pb::Subscription) -> Self {
        Self {
            name: s.name,
            topic: s.topic,
            push_config: s
                .push_config
                .map(|p| PushConfig { push_endpoint: p.push_endpoint, attributes: p.attributes }),
            ack_deadline_seconds: s.ack_deadline_seconds,
            retain_acked_messages: s.retain_acked_messages,
            message_retention_duration: s.message_retention_duration,
            labels: s.labels,
            enable_message_ordering: s.enable_message_ordering,
            expiration_policy: s.expiration_policy.map(|e| ExpirationPolicy { ttl: e.ttl }),
            filter: s.filter,
            dead_letter_policy: s.dead_letter_policy.map(|d| DeadLetterPolicy {
                dead_letter_topic: d.dead_letter_topic,
                max_delivery_attempts: d.max_delivery_attempts,
            }),
            retry_policy: s.retry_policy.map(|r| RetryPolicy {
                minimum_backoff: r.minimum_backoff,
                maximum_backoff: r.maximum_backoff,
            }),
            detached: s.detached,
            enable_exactly_once_delivery: s.enable_exactly_once_delivery,
            topic_message_retention_duration: s.topic_message_retention_duration,
            state: s.state,
        }
    }
}

impl From<Subscription> for pb::Subscription {
    fn from(s: Subscription) -> Self {
        Self {
            name: s.name,
            topic: s.topic,
            push_config: s.push_config.map(Into::into),
            ack_deadline_seconds: s.ack_deadline_seconds,
            retain_acked_messages: s.retain_acked_messages,
            message_retention_duration: s.message_retention_duration,
            labels: s.labels,
            enable_message_ordering: s.enable_message_ordering,
            expiration_policy: s.expiration_policy.map(|e| pb::ExpirationPolicy { ttl: e.ttl }),
            filter: s.filter,
            dead_letter_policy: s.dead_letter_policy.map(|d| pb::DeadLetterPolicy {
                dead_letter_topic: d.dead_letter_topic,
                max_delivery_attempts: d.max_delivery_attempts,
            }),
            retry_policy: s.retry_policy.map(|r| pb::RetryPolicy {
                minimum_backoff: r.minimum_backoff,
                maximum_backoff: r.maximum_backoff,
            }),
            enable_exactly_once_delivery: s.enable_exactly_once_delivery,
            ..Self::default()
        }
    }
}

/// `Snapshot`.
#[derive(Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Snapshot {
    name: String,
    topic: String,
    #[serde(with = "timestamp", skip_serializing_if = "Option::is_none")]
    expire_time: Option<Timestamp>,
    #[serde(skip_serializing_if = "is_default")]
    labels: Labels,
}

impl From<pb::Snapshot> for Snapshot {
    fn from(s: pb::Snapshot) -> Self {
        Self { name: s.name, topic: s.topic, expire_time: s.expire_time, labels: s.labels }
    }
}

impl From<Snapshot> for pb::Snapshot {
    fn from(s: Snapshot) -> Self {
        Self { name: s.name, topic: s.topic, expire_time: s.expire_time, labels: s.labels }
    }
}
