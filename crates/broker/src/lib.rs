//! Publish, subscribe, acknowledge: the one place that knows Google's Pub/Sub client and its traps.
//!
//! What callers may rely on:
//! * [`Broker::publish_batch`] answers for every entry in order, is bounded in bytes and time, and never leaves an
//!   ordering key paused;
//! * a [`Subscription`] never ends by itself and never has more in flight than its [`FlowLimits`] say, over all
//!   reconnects;
//! * delivery is at least once. Message ids and delivery attempts are the broker's own and identify nothing of ours.

mod admin;
mod connect;
mod delivery;
mod error;
mod publish;
mod pump;
mod size;
mod subscribe;

pub use admin::{DeadLetter, SubscriptionSpec};
pub use connect::{Broker, BrokerConfig};
pub use delivery::Delivery;
pub use error::{AdminError, ConnectError, PublishError};
pub use publish::{MessageId, Outgoing};
pub use size::{MAX_MESSAGE_BYTES, MAX_REQUEST_BYTES, MAX_REQUEST_MESSAGES};
pub use subscribe::{Connection, FlowLimits, Subscription};
