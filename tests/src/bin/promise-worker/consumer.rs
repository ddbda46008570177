//! From events to operations.

use crate::effect::{Effect, Keyed, Order};
use backline_envelope::{DecodeError, Envelope, Event, decode};
use backline_runtime::{Command, Consumer, Intent};
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
        let wanted: ThingOrdered = decode(event)?;
        Ok(vec![Intent::run(event, Effect::<Keyed>::owed(&wanted.key, &wanted.order))?])
    }
}
