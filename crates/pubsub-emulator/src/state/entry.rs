//! One message in one subscription.

use crate::wire::Stored;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use tokio::time::Instant;

/// A delivery that is out at a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) id: u64,
    pub(crate) until: Instant,
    /// Stream (or unary pull) that received it; may be gone.
    pub(crate) stream: u64,
}

/// Where a message stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    Ready,
    /// Held back by the retry policy or a delay fault.
    Scheduled(Instant),
    Leased(Lease),
    /// Acknowledged, but an earlier message of its ordering key is not: it may have to go out again.
    Acked,
    /// On its way to the dead-letter topic.
    Forwarding,
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) stored: Arc<Stored>,
    /// Nacks and expiries so far.
    pub(crate) failures: u32,
    pub(crate) standing: Standing,
}

/// What a client hands back: subscription, position and the lease it was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct AckId {
    pub(crate) subscription: u64,
    pub(crate) position: u64,
    pub(crate) lease: u64,
}

impl fmt::Display for AckId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{:x}-{:x}", self.subscription, self.position, self.lease)
    }
}

/// The text is no acknowledgement id of this emulator.
#[derive(Debug, thiserror::Error)]
#[error("malformed acknowledgement id")]
pub(crate) struct MalformedAckId;

impl FromStr for AckId {
    type Err = MalformedAckId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.splitn(3, '-').map(|part| u64::from_str_radix(part, 16));
        match (parts.next(), parts.next(), parts.next()) {
            (Some(Ok(subscription)), Some(Ok(position)), Some(Ok(lease))) => {
                Ok(Self { subscription, position, lease })
            }
            _ => Err(MalformedAckId),
        }
    }
}

/// How one acknowledgement or deadline change went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AckResult {
    Done,
    /// The lease is over: ignored, or an error on exactly-once subscriptions.
    Stale,
    /// Exactly-once with ordering: an earlier message of the key is not acknowledged yet.
    Unordered,
}

/// One message handed to a stream.
#[derive(Debug, Clone)]
pub(crate) struct Delivery {
    pub(crate) position: u64,
    pub(crate) lease: u64,
    pub(crate) attempt: u32,
    pub(crate) stored: Arc<Stored>,
}

/// What a change leaves to do outside the subscription's lock.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    /// Positions that are done for good.
    pub(crate) settled: Vec<u64>,
    /// Positions whose failure count rose, with the new count.
    pub(crate) failed: Vec<(u64, u32)>,
    /// Messages that go to the dead-letter topic.
    pub(crate) forward: Vec<super::Forward>,
}
