//! From events to operations.

use crate::effect::{Keyed, Order, Shape};
use backline_envelope::{DecodeError, Envelope, Event, Malformed, Payload, decode};
use backline_outbox::NewOperation;
use backline_runtime::{Consumer, Intent};
use serde::{Deserialize, Serialize};

pub(crate) struct Things;

/// Somebody ordered something.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ThingOrdered {
    /// The operation's key.
    key: String,
    /// Its input.
    order: Order,
}

impl Event for ThingOrdered {
    const TYPE: &'static str = "ThingOrdered";
    const VERSION: i32 = 1;
}

impl Consumer for Things {
    const NAME: &'static str = "promises";
    const EVENTS: &'static [&'static str] = &[ThingOrdered::TYPE];

    fn intents(&self, event: &Envelope) -> Result<Vec<Intent>, DecodeError> {
        let malformed = |field, reason: String| DecodeError::Malformed(Malformed { field, reason });
        let wanted: ThingOrdered = decode(event)?;
        let organization =
            event.organization.ok_or_else(|| malformed("organization", "is missing".to_owned()))?;
        let input = Payload::encode(&wanted.order).map_err(|error| malformed("order", error.to_string()))?;
        Ok(vec![Intent::Run(NewOperation::new(Keyed::KIND, organization, wanted.key, input))])
    }
}
