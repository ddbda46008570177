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
mod difference;
mod error;
mod grants;
mod mend;
mod publish;
mod pump;
mod settings;
mod size;
mod subscribe;
mod topology;

pub use connect::{Broker, BrokerConfig};
pub use delivery::Delivery;
pub use difference::{Change, Difference, FieldDifference, Resource};
pub use error::{AdminError, ConnectError, PublishError};
pub use grants::Grant;
pub use mend::Mended;
pub use publish::{MessageId, Outgoing};
pub use settings::{SettingError, emulator_host, project_id};
pub use size::{MAX_MESSAGE_BYTES, MAX_REQUEST_BYTES, MAX_REQUEST_MESSAGES};
pub use subscribe::{Connection, FlowLimits, Subscription};
pub use topology::{DeadLetter, SubscriptionSpec, Topology, TopologyError, written};
