//! Consumers: pure functions from an event to intents.

use crate::author::Owed;
use backline_broker::SubscriptionSpec;
use backline_envelope::{DecodeError, Envelope};
use backline_outbox::NewOperation;

/// What a consumer asks for.
#[derive(Debug, Clone)]
pub enum Intent {
    /// Run this operation.
    Run(NewOperation),
}

impl Intent {
    /// Runs what a handler is owed, in the event's organization and project.
    ///
    /// # Errors
    /// [`DecodeError::Malformed`]: the event belongs to no organization, or names nothing.
    pub fn run(event: &Envelope, owed: Owed) -> Result<Self, DecodeError> {
        owed.asked_by(event).map(Self::Run)
    }
}

/// A named reader of events with its own subscription.
pub trait Consumer: Send + Sync + 'static {
    /// Name; its completion is sealed per (event, consumer).
    const NAME: &'static str;
    /// Event types it wants; others on its subscription are acknowledged without a seal.
    const EVENTS: &'static [&'static str];

    /// Turns an event into intents, filtering on the payload. No I/O: filters that need state belong in read or guard.
    ///
    /// # Errors
    /// [`DecodeError`]; the delivery is then stored, never dropped.
    fn intents(&self, event: &Envelope) -> Result<Vec<Intent>, DecodeError>;

    /// What its subscription looks like, where the usual one does not fit. This is the one place: the worker reads the
    /// subscription that is named here, and `backline topology` makes it as it is described here. A filter must let
    /// every type of [`EVENTS`](Self::EVENTS) through, or those are offered again until they are parked.
    fn subscription(&self, usual: SubscriptionSpec) -> SubscriptionSpec {
        usual
    }
}
