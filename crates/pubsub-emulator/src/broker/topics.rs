//! Topics: create, read, change, delete.

use super::pages::{Page, page};
use super::snapshots::Snapshot;
use super::subscription::Subscription;
use super::{Broker, DELETED_TOPIC, exists};
use crate::limits;
use crate::persist::Kind;
use crate::wire::{Stored, now_nanos};
use googleapis_tonic_google_pubsub_v1::google::pubsub::v1 as pb;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use tonic::Status;

/// A topic and who receives its messages.
pub(crate) struct Topic {
    pub(crate) name: Arc<str>,
    pub(super) state: Mutex<TopicState>,
}

/// Held while messages get their positions, so that all receivers see one order.
pub(super) struct TopicState {
    pub(super) config: pb::Topic,
    pub(super) subscriptions: Vec<Arc<Subscription>>,
    pub(super) snapshots: Vec<Arc<Snapshot>>,
    /// Messages kept by the topic's own retention.
    pub(super) retained: BTreeMap<u64, Arc<Stored>>,
    pub(super) deleted: bool,
}

impl TopicState {
    /// Forgets retained messages older than the topic's retention.
    pub(super) fn forget_old(&mut self) {
        let kept = self.config.message_retention_duration.as_ref().map_or(0, |d| d.seconds);
        let oldest = now_nanos().saturating_sub(kept.saturating_mul(1_000_000_000));
        while let Some(first) = self.retained.first_entry().filter(|e| e.get().published < oldest) {
            first.remove();
        }
    }
}

impl Topic {
    pub(super) fn new(config: pb::Topic) -> Self {
        Self {
            name: Arc::from(config.name.as_str()),
            state: Mutex::new(TopicState {
                config,
                subscriptions: Vec::new(),
                snapshots: Vec::new(),
                retained: BTreeMap::new(),
                deleted: false,
            }),
        }
    }

    pub(crate) fn config(&self) -> pb::Topic {
        self.state.lock().config.clone()
    }
}

fn check(topic: &pb::Topic) -> Result<(), Status> {
    if let Some(retention) = &topic.message_retention_duration
        && !(600..=31 * 86_400).contains(&retention.seconds)
    {
        return Err(Status::invalid_argument("message_retention_duration: must be 10 minutes to 31 days"));
    }
    Ok(())
}

impl Broker {
    /// Creates a topic.
    pub(crate) fn create_topic(&self, mut topic: pb::Topic) -> Result<pb::Topic, Status> {
        limits::name(&topic.name, "topics")?;
        check(&topic)?;
        topic.state = pb::topic::State::Active.into();
        let _admin = self.admin.lock();
        if self.topics.read().contains_key(&topic.name) {
            return Err(exists("topic", &topic.name));
        }
        self.persist(|| Kind::Topic(topic.clone()))?;
        self.topics.write().insert(topic.name.clone(), Arc::new(Topic::new(topic.clone())));
        Ok(topic)
    }

    /// Changes the fields of `mask` (names as in the protocol).
    pub(crate) fn update_topic(&self, from: pb::Topic, mask: &[String]) -> Result<pb::Topic, Status> {
        if mask.is_empty() {
            return Err(Status::invalid_argument("update_mask: names no field"));
        }
        let _admin = self.admin.lock();
        let topic = self.topic(&from.name)?;
        let mut config = topic.config();
        for field in mask {
            match field.as_str() {
                "labels" => config.labels.clone_from(&from.labels),
                "message_storage_policy" => {
                    config.message_storage_policy.clone_from(&from.message_storage_policy);
                }
                "message_retention_duration" => {
                    config.message_retention_duration = from.message_retention_duration;
                }
                "kms_key_name" => config.kms_key_name.clone_from(&from.kms_key_name),
                "schema_settings" => config.schema_settings.clone_from(&from.schema_settings),
                other => {
                    return Err(Status::invalid_argument(format!(
                        "update_mask: {other:?} cannot be updated"
                    )));
                }
            }
        }
        check(&config)?;
        self.persist(|| Kind::Topic(config.clone()))?;
        topic.state.lock().config = config.clone();
        Ok(config)
    }

    /// Deletes a topic; its subscriptions keep their backlog.
    pub(crate) fn delete_topic(&self, name: &str) -> Result<(), Status> {
        let _admin = self.admin.lock();
        let topic = self.topic(name)?;
        self.persist(|| Kind::TopicDelete(name.to_owned()))?;
        self.topics.write().remove(name);
        let mut state = topic.state.lock();
        state.deleted = true;
        for subscription in state.subscriptions.drain(..) {
            subscription.state.lock().config.topic = DELETED_TOPIC.to_owned();
        }
        Ok(())
    }

    /// Topics of a project (`projects/{project}`).
    pub(crate) fn list_topics(&self, project: &str, size: i32, token: &str) -> Page<pb::Topic> {
        let prefix = format!("{project}/topics/");
        page(&self.topics.read(), size, token, |name, topic| {
            name.starts_with(&prefix).then(|| topic.config())
        })
    }

    /// Names of a topic's subscriptions.
    pub(crate) fn topic_subscriptions(
        &self,
        topic: &str,
        size: i32,
        token: &str,
    ) -> Result<Page<String>, Status> {
        self.topic(topic)?;
        Ok(page(&self.subscriptions.read(), size, token, |name, subscription| {
            (subscription.state.lock().config.topic == topic).then(|| name.clone())
        }))
    }
}
