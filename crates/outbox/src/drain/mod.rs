//! The relay's side of the outbox: lanes under fenced leases, batches, marks.
//!
//! A lane is held by one relay at a time. Holding is a value, [`LaneHold`]: token and nonce travel with every write,
//! and a write of a holder whose lane was taken meanwhile is refused ([`DrainError::Fenced`]).

mod backlog;
mod batch;
mod lane;
mod mark;
mod reoffer;

pub use backlog::{Backlog, backlog};
pub use batch::{Entry, read_batch};
pub use lane::{LaneHold, TakenLane, horizon, release_lane, renew_lanes, rescan_lanes, take_lanes};
pub use mark::{Confirmed, Refused, mark_published, park};
pub use reoffer::{Reoffered, reoffer_unsealed};

use crate::Explained;
use crate::run_tx::AsTransient;

/// Why a write to a lane did not happen.
#[derive(Debug, thiserror::Error)]
pub enum DrainError {
    /// Somebody else holds the lane now. An outcome to act on, not a fault: stop working on it.
    #[error("lane is held by somebody else")]
    Fenced,
    /// The database failed.
    #[error("database: {}", Explained(.0))]
    Database(#[from] sqlx::Error),
}

impl AsTransient for DrainError {
    fn is_transient(&self) -> bool {
        match self {
            Self::Fenced => false,
            Self::Database(error) => error.is_transient(),
        }
    }
}
