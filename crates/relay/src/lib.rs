//! The relay: hands outbox entries to the broker and records what the broker confirmed.
//!
//! Any number of replicas may run. Each takes free lanes under fenced leases, reads a bounded batch, publishes it
//! outside any transaction, and moves only what was confirmed. A crash anywhere costs at most a repeat with the same
//! id and bytes (obligation D3). A refused entry is parked with its reason; an outage parks nothing and slows down.
//!
//! Order: a lane is published in insertion order, aggregate versions first where given. A parked entry is an explicit
//! gap, and a repeat after a crash may come behind younger entries: readers sort repeats out by event id.

mod config;
mod describe;
mod gate;
mod hand_over;
mod health;
mod lane_work;
mod leases;
mod progress;
mod relay;
mod settle;
mod spans;
mod sweep;
mod trail;

pub use config::{RelayConfig, SettingError};
pub use describe::describe_metrics;
pub use health::health_routes;
pub use progress::Progress;
pub use relay::{Relay, RelayEnd};
