//! Snapshots: a backlog kept aside, which goes on collecting what is published.

use super::pages::{Page, page};
use super::{Broker, exists};
use crate::limits;
use crate::persist::{Kind, SnapshotRecord};
use crate::wire::{Stored, now_nanos, timestamp};
use googleapis_tonic_google_pubsub_v1::google::pubsub::v1 as pb;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use tonic::Status;

/// Longest life of a snapshot: 7 days less the age of its oldest message (comment of `Snapshot.expire_time`).
const LIFETIME_NANOS: i64 = 7 * 86_400 * 1_000_000_000;
/// A snapshot that would live shorter is refused.
const SHORTEST_NANOS: i64 = 3600 * 1_000_000_000;

/// A snapshot.
pub(super) struct Snapshot {
    pub(super) config: Mutex<pb::Snapshot>,
    pub(super) messages: Mutex<BTreeMap<u64, Arc<Stored>>>,
}

impl Snapshot {
    pub(super) fn record(&self) -> SnapshotRecord {
        SnapshotRecord {
            config: Some(self.config.lock().clone()),
            positions: self.messages.lock().keys().copied().collect(),
        }
    }
}

impl Broker {
    /// Keeps the backlog of a subscription aside.
    pub(crate) fn create_snapshot(&self, from: pb::CreateSnapshotRequest) -> Result<pb::Snapshot, Status> {
        limits::name(&from.name, "snapshots")?;
        let _admin = self.admin.lock();
        if self.snapshots.read().contains_key(&from.name) {
            return Err(exists("snapshot", &from.name));
        }
        let subscription = self.subscription(&from.subscription)?;
        let topic = self.topic(&subscription.config().topic)?;
        let mut topic_state = topic.state.lock();
        let messages: BTreeMap<_, _> = {
            let state = subscription.usable()?;
            state.queue.backlog().into_iter().map(|(position, (stored, _))| (position, stored)).collect()
        };
        let now = now_nanos();
        let oldest = messages.values().next().map_or(now, |stored| stored.published);
        let expires = oldest.saturating_add(LIFETIME_NANOS);
        if expires - now < SHORTEST_NANOS {
            return Err(Status::failed_precondition("snapshot would expire in less than an hour"));
        }
        let config = pb::Snapshot {
            name: from.name.clone(),
            topic: topic.name.to_string(),
            expire_time: Some(timestamp(expires)),
            labels: from.labels,
        };
        let snapshot =
            Arc::new(Snapshot { config: Mutex::new(config.clone()), messages: Mutex::new(messages) });
        self.persist(|| Kind::Snapshot(snapshot.record()))?;
        topic_state.snapshots.push(Arc::clone(&snapshot));
        self.snapshots.write().insert(from.name, snapshot);
        Ok(config)
    }

    pub(crate) fn get_snapshot(&self, name: &str) -> Result<pb::Snapshot, Status> {
        Ok(self.snapshot(name)?.config.lock().clone())
    }

    /// Changes the fields of `mask` (names as in the protocol).
    pub(crate) fn update_snapshot(
        &self,
        from: pb::Snapshot,
        mask: &[String],
    ) -> Result<pb::Snapshot, Status> {
        let _admin = self.admin.lock();
        let snapshot = self.snapshot(&from.name)?;
        {
            let mut config = snapshot.config.lock();
            for field in mask {
                match field.as_str() {
                    "labels" => config.labels.clone_from(&from.labels),
                    "expire_time" => config.expire_time = from.expire_time,
                    other => {
                        return Err(Status::invalid_argument(format!(
                            "update_mask: {other:?} cannot be updated"
                        )));
                    }
                }
            }
        }
        self.persist(|| Kind::Snapshot(snapshot.record()))?;
        let config = snapshot.config.lock().clone();
        Ok(config)
    }

    pub(crate) fn delete_snapshot(&self, name: &str) -> Result<(), Status> {
        let _admin = self.admin.lock();
        let snapshot = self.snapshot(name)?;
        self.persist(|| Kind::SnapshotDelete(name.to_owned()))?;
        self.snapshots.write().remove(name);
        let topic = snapshot.config.lock().topic.clone();
        if let Ok(topic) = self.topic(&topic) {
            topic.state.lock().snapshots.retain(|other| !Arc::ptr_eq(other, &snapshot));
        }
        Ok(())
    }

    /// Snapshots of a project (`projects/{project}`).
    pub(crate) fn list_snapshots(&self, project: &str, size: i32, token: &str) -> Page<pb::Snapshot> {
        let prefix = format!("{project}/snapshots/");
        page(&self.snapshots.read(), size, token, |name, snapshot| {
            name.starts_with(&prefix).then(|| snapshot.config.lock().clone())
        })
    }

    /// Names of a topic's snapshots.
    pub(crate) fn topic_snapshots(
        &self,
        topic: &str,
        size: i32,
        token: &str,
    ) -> Result<Page<String>, Status> {
        self.topic(topic)?;
        Ok(page(&self.snapshots.read(), size, token, |name, snapshot| {
            (snapshot.config.lock().topic == topic).then(|| name.clone())
        }))
    }
}
