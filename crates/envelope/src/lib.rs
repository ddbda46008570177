//! The envelope: an event plus everything a reader needs to trust, order, deduplicate and trace it.
//!
//! Pure: no I/O and no clock. What travels over Pub/Sub is frozen by snapshots in `tests/`, because a broker keeps
//! entries for days and a re-offer must carry the same id and bytes.
//!
//! * [`Envelope`] and its `CloudEvents` binary form ([`Envelope::to_attributes`], [`Envelope::from_attributes`]),
//! * [`Event`], the typed payload with its version and the [`Upcast`] chain of retired versions,
//! * [`child_event_id`], the deterministic identity of what a consumer or step emits,
//! * the contract checks of names, scopes and sizes ([`check_event_name`], [`check_event`], [`Envelope::check`]).

mod attributes;
mod contract;
mod decode;
mod envelope;
mod event;
mod identity;
mod payload;

pub use attributes::{Attributes, SOURCE, TYPE_PREFIX};
pub use contract::{
    ContractError, MAX_ATTRIBUTE_BYTES, MAX_ENVELOPE_BYTES, PLATFORM_EVENT_TYPES, check_event,
    check_event_name,
};
pub use decode::{DecodeError, Malformed, decode};
pub use envelope::Envelope;
pub use event::{Event, Scope, Upcast};
pub use identity::child_event_id;
pub use payload::{InvalidJson, Payload};
