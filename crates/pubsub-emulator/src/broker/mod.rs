//! Everything the emulator holds, and the operations that gRPC and REST share.
//!
//! Lock order: registry, topic, subscription, journal. Nothing is encoded or hashed under a lock.

mod acknowledge;
mod deliver;
mod pages;
mod publish;
mod restore;
mod seek;
mod snapshots;
mod subscription;
mod subscription_rules;
mod subscriptions;
mod topics;

pub(crate) use acknowledge::AckReport;
pub(crate) use deliver::Receiver;
pub(crate) use pages::Page;
pub(crate) use seek::SeekTo;
pub(crate) use subscription::Subscription;
pub(crate) use topics::Topic;

use crate::config::Config;
use crate::faults::Faults;
use crate::log::Log;
use crate::persist::{Journal, Kind};
use crate::stats::Stats;
use anyhow::Result;
use parking_lot::{Mutex, RwLock};
use snapshots::Snapshot;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio_util::sync::CancellationToken;
use tonic::Status;

/// Name of the topic of subscriptions whose topic was deleted.
const DELETED_TOPIC: &str = "_deleted-topic_";

/// Resources by full name.
type Registry<T> = RwLock<BTreeMap<String, Arc<T>>>;

/// The emulated service.
pub(crate) struct Broker {
    pub(crate) config: Config,
    pub(crate) faults: Faults,
    pub(crate) log: Log,
    pub(crate) stats: Stats,
    /// Ends streams, waiting pulls and timers.
    pub(crate) stopping: CancellationToken,
    topics: Registry<Topic>,
    subscriptions: Registry<Subscription>,
    snapshots: Registry<Snapshot>,
    /// Serializes changes of resources, so that checks and changes are one step.
    admin: Mutex<()>,
    journal: Option<Journal>,
    next_message_id: AtomicU64,
    next_position: AtomicU64,
    next_subscription: AtomicU64,
    next_stream: AtomicU64,
    /// Where lease numbers start: microseconds since 1970, above every earlier life's.
    first_lease: u64,
}

impl Broker {
    /// An empty broker, or the one the data directory remembers. Needs a Tokio runtime for timers.
    pub(crate) fn open(config: Config, stopping: CancellationToken) -> Result<Arc<Self>> {
        let records = match &config.data_dir {
            Some(dir) => {
                std::fs::create_dir_all(dir)?;
                crate::persist::read(dir)?
            }
            None => Vec::new(),
        };
        let mut broker = Self {
            faults: Faults::new(),
            log: Log::new(config.log_limit),
            stats: Stats::default(),
            stopping,
            topics: Registry::default(),
            subscriptions: Registry::default(),
            snapshots: Registry::default(),
            admin: Mutex::new(()),
            journal: None,
            next_message_id: AtomicU64::new(1),
            next_position: AtomicU64::new(1),
            next_subscription: AtomicU64::new(1),
            next_stream: AtomicU64::new(1),
            first_lease: u64::try_from(crate::wire::now_nanos() / 1000).unwrap_or(1),
            config,
        };
        broker.replay(records)?;
        if let Some(dir) = broker.config.data_dir.clone() {
            broker.journal = Some(Journal::rewrite(&dir, broker.records().into_iter())?);
        }
        let broker = Arc::new(broker);
        for subscription in broker.subscriptions.read().values() {
            broker.start_timer(subscription);
        }
        Ok(broker)
    }

    /// Writes a change down before it is confirmed.
    fn persist(&self, record: impl FnOnce() -> Kind) -> Result<(), Status> {
        let Some(journal) = &self.journal else { return Ok(()) };
        journal.append(record()).map_err(|e| {
            tracing::error!(error = %e, "journal write failed");
            Status::unavailable("journal: write failed")
        })
    }

    pub(crate) fn topic(&self, name: &str) -> Result<Arc<Topic>, Status> {
        self.topics.read().get(name).cloned().ok_or_else(|| missing("topic", name))
    }

    pub(crate) fn subscription(&self, name: &str) -> Result<Arc<Subscription>, Status> {
        self.subscriptions.read().get(name).cloned().ok_or_else(|| missing("subscription", name))
    }

    fn snapshot(&self, name: &str) -> Result<Arc<Snapshot>, Status> {
        self.snapshots.read().get(name).cloned().ok_or_else(|| missing("snapshot", name))
    }

    fn next(counter: &AtomicU64, count: usize) -> u64 {
        counter.fetch_add(count as u64, Ordering::Relaxed)
    }

    /// Replaces the faults and lets open streams look at them.
    pub(crate) fn set_faults(&self, plan: crate::faults::FaultPlan) -> Result<(), Status> {
        self.faults.set(plan)?;
        self.all_subscriptions().iter().for_each(|subscription| subscription.wake_all());
        Ok(())
    }

    /// Every subscription, for statistics and fault control.
    pub(crate) fn all_subscriptions(&self) -> Vec<Arc<Subscription>> {
        self.subscriptions.read().values().cloned().collect()
    }
}

/// The answer for a resource that does not exist.
fn missing(kind: &str, name: &str) -> Status {
    Status::not_found(format!("{kind} {name:?} does not exist"))
}

/// The answer for a resource that exists already.
fn exists(kind: &str, name: &str) -> Status {
    Status::already_exists(format!("{kind} {name:?} already exists"))
}
