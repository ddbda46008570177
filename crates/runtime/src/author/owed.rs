//! Typed requests: kind, serial key and the input's shape are the handler's.

use backline_envelope::{DecodeError, Envelope, Malformed, Payload};
use backline_outbox::NewOperation;
use serde::Serialize;
use std::time::Duration;
use uuid::Uuid;

/// A request for one operation of a known handler, made by [`Command::owed`](crate::Command::owed) or
/// [`Reconcile::owed`](crate::Reconcile::owed); organization, project, correlation and trace are those of what asks.
#[derive(Debug, Clone)]
#[must_use = "nothing is asked for yet"]
pub struct Owed {
    kind: &'static str,
    key: String,
    serial_key: Option<String>,
    /// Or why it is no JSON.
    input: Result<Payload, String>,
    delay: Option<Duration>,
}

impl Owed {
    pub(crate) fn new<I: Serialize>(
        kind: &'static str,
        key: &impl ToString,
        serial_key: Option<fn(&I) -> String>,
        input: &I,
    ) -> Self {
        Self {
            kind,
            key: key.to_string(),
            serial_key: serial_key.map(|of| of(input)),
            input: Payload::encode(input).map_err(|error| error.to_string()),
            delay: None,
        }
    }

    /// Not before this long after acceptance. A desired state that is asked for again sooner is looked at then, and
    /// once more after this.
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = Some(delay);
        self
    }

    /// The request on behalf of an event: its organization, which it must have.
    pub(crate) fn asked_by(self, event: &Envelope) -> Result<NewOperation, DecodeError> {
        let bad = |field, reason: &str| Malformed { field, reason: reason.to_owned() };
        let organization = event.organization.ok_or_else(|| bad("organization", "is missing"))?;
        if self.key.is_empty() {
            return Err(bad("operation_key", "is empty").into());
        }
        Ok(self.within(organization).map_err(|reason| bad("input", &reason))?)
    }

    /// The request in this organization, or why its input is no JSON.
    pub(crate) fn within(self, organization: Uuid) -> Result<NewOperation, String> {
        Ok(NewOperation {
            serial_key: self.serial_key,
            delay: self.delay,
            ..NewOperation::new(self.kind, organization, self.key, self.input?)
        })
    }
}
