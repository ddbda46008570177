//! Counters since start, for `GET /stats`.

use serde_json::{Map, Value};
use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {
        /// What happened since start.
        #[derive(Debug, Default)]
        pub(crate) struct Stats {
            $($(#[$doc])* pub(crate) $name: Counter,)+
        }

        impl Stats {
            pub(crate) fn json(&self) -> Map<String, Value> {
                [$((stringify!($name).to_owned(), Value::from(self.$name.get())),)+].into_iter().collect()
            }
        }
    };
}

counters! {
    /// Publish requests accepted.
    publish_requests,
    /// Messages accepted, dead letters included, copies of a duplicate fault not.
    messages_accepted,
    /// Messages handed to clients.
    messages_delivered,
    /// Acknowledgements applied.
    acks,
    /// Acknowledgements of leases that were over.
    stale_acks,
    /// Deliveries given back.
    nacks,
    /// Deadlines moved.
    deadlines_extended,
    /// Leases that ran out.
    leases_expired,
    /// Messages published to a dead-letter topic.
    dead_lettered,
    /// Streaming pulls opened.
    streams_opened,
    /// Unary pulls.
    pulls,
}

/// A counter that only rises.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, by: u64) {
        self.0.fetch_add(by, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
