//! Receivers of a subscription: streaming pulls, and unary pulls while they wait.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// How much one receiver may have outstanding, and how long it holds a delivery.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Capacity {
    pub(crate) messages: usize,
    pub(crate) bytes: usize,
    /// Acknowledgement deadline of what it receives.
    pub(crate) deadline: Duration,
    /// Leave a fair share to the other receivers (streams do, unary pulls take what is there).
    pub(crate) shares: bool,
}

/// One receiver with its own flow control.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) capacity: Capacity,
    pub(crate) wake: Arc<Notify>,
    pub(crate) outstanding: usize,
    pub(crate) bytes: usize,
    /// Next messages of ordering keys this receiver owns.
    pub(crate) owned: BTreeSet<u64>,
    /// It let a delivery expire and has not been heard of since.
    pub(crate) silent: bool,
}

impl Slot {
    pub(crate) fn new(capacity: Capacity, wake: Arc<Notify>) -> Self {
        Self { capacity, wake, outstanding: 0, bytes: 0, owned: BTreeSet::new(), silent: false }
    }

    /// Whether another message may go out. One always may when nothing is outstanding, else a message
    /// larger than the byte limit would never move.
    pub(crate) fn has_room(&self) -> bool {
        self.outstanding == 0
            || (self.outstanding < self.capacity.messages && self.bytes < self.capacity.bytes)
    }
}
