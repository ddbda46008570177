//! From envelope to typed event, and the two ways in which that may fail.

use crate::{Envelope, Event};

/// The delivery's bytes break the format: no build will ever read them.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{field}: {reason}")]
pub struct Malformed {
    /// The attribute or field that is wrong.
    pub field: &'static str,
    /// What is wrong with it, without payload text.
    pub reason: String,
}

impl Malformed {
    pub(crate) fn new(field: &'static str, reason: impl Into<String>) -> Self {
        Self { field, reason: reason.into() }
    }
}

/// Why a delivery cannot be used by this build.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum DecodeError {
    /// Poison: park it.
    #[error("malformed delivery: {0}")]
    Malformed(#[from] Malformed),
    /// A newer or foreign type: keep it as `waiting-for-capability` until a capable build accepts it.
    #[error("unsupported event type `{event_type}` version {version}")]
    Unsupported {
        /// The event's type.
        event_type: String,
        /// Its schema version.
        version: i32,
    },
}

/// Reads the payload as `E`, lifting retired versions step by step.
///
/// # Errors
/// [`DecodeError::Unsupported`] for another type, a newer version or a retired one without a path up;
/// [`DecodeError::Malformed`] when the payload does not have the shape its version promises.
pub fn decode<E: Event>(envelope: &Envelope) -> Result<E, DecodeError> {
    let unsupported = || DecodeError::Unsupported {
        event_type: envelope.event_type.clone(),
        version: envelope.schema_version,
    };
    if envelope.event_type != E::TYPE || envelope.schema_version > E::VERSION {
        return Err(unsupported());
    }
    if envelope.schema_version == E::VERSION {
        // Straight from the text: going through a generic value would round large and decimal numbers.
        return envelope.payload.decode().map_err(|error| shape(&error));
    }
    let mut value = envelope.payload.decode().map_err(|error| shape(&error))?;
    for version in envelope.schema_version..E::VERSION {
        let step = E::UPCASTS.iter().find(|step| step.from == version).ok_or_else(unsupported)?;
        value = (step.apply)(value).map_err(|reason| {
            Malformed::new("payload", format!("upcast from version {version}: {reason}"))
        })?;
    }
    serde_json::from_value(value).map_err(|error| shape(&error))
}

/// Serde's texts may quote a value, so only the kind of fault and its place are kept.
fn shape(error: &serde_json::Error) -> DecodeError {
    Malformed::new(
        "payload",
        format!("{:?} error at line {}, column {}", error.classify(), error.line(), error.column()),
    )
    .into()
}
