//! The single-fault sweep: every durable boundary of relay and worker, one fault at a time, then the invariants.
//!
//! A recording run finds the boundaries, so a new one is visited without anyone remembering it; [`boundary`] maps them
//! to the names of the reliability plan and fails on one that it does not know. After each fault the product is
//! healed, must come to rest, and is judged by what database, broker and provider say, not by what it says itself.
//!
//! [`scenario`] holds the situations that seeded bugs must not survive. None of them knows which bug is switched on.

mod bench;
pub mod boundary;
mod failover;
mod invariants;
mod rooms;
pub mod scenario;
mod shards;
mod visit;
mod written;

pub use bench::Bench;
pub use failover::failover_to_a_stale_standby;
pub use invariants::{Intended, must_hold, violations};
pub use rooms::Change;
pub use shards::survive;
pub use visit::{Role, Visit, open, open_rooms, record, record_rooms, request_visits, visits};
pub use written::Written;
