//! A private PostgreSQL cluster: started, crashed, restarted, copied to a standby and removed at will.
//!
//! Sockets are TCP on 127.0.0.1 only, with trust authentication: no socket file means no length limit on the
//! directory and nothing to clean. Never put real data in such a cluster.

mod binaries;
mod cluster;
mod identity;
mod options;
mod place;
mod session;
mod standby;

pub use binaries::{Binaries, OLDEST_MAJOR};
pub use cluster::Cluster;
pub use options::Options;
pub use place::{state_dir, throwaway_dir};
pub use session::Session;

/// The superuser of every cluster made here; it has no password.
pub const USER: &str = "postgres";
