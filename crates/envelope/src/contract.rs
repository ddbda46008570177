//! What every event must keep to: names, scopes and sizes.

use crate::{Envelope, Event, Scope};

/// The only events without organization and project (obligation I25).
pub const PLATFORM_EVENT_TYPES: [&str; 3] =
    ["MagicLinkEmailRequested", "InvitationEmailRequested", "UserDeletionRequested"];

/// Longest attribute value Pub/Sub takes, in bytes (<https://cloud.google.com/pubsub/quotas#resource_limits>).
pub const MAX_ATTRIBUTE_BYTES: usize = 1024;

/// Largest envelope in bytes, attributes included: Pub/Sub takes 10 MB per message, and its accounting of attributes
/// and framing is not published, so a tenth is kept free.
pub const MAX_ENVELOPE_BYTES: usize = 9_000_000;

/// Past tenses that do not end in `ed`; the same list as in the SQL function `backline.emit_event`.
const IRREGULAR: [&str; 39] = [
    "Sent",
    "Paid",
    "Lost",
    "Left",
    "Built",
    "Made",
    "Won",
    "Begun",
    "Met",
    "Sold",
    "Bought",
    "Taken",
    "Given",
    "Withdrawn",
    "Written",
    "Chosen",
    "Set",
    "Put",
    "Read",
    "Held",
    "Kept",
    "Known",
    "Shown",
    "Run",
    "Split",
    "Cut",
    "Spent",
    "Done",
    "Gone",
    "Seen",
    "Driven",
    "Frozen",
    "Broken",
    "Drawn",
    "Grown",
    "Thrown",
    "Overdrawn",
    "Undone",
    "Reset",
];

/// A broken contract; the text names the field.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ContractError {
    /// The name is not a past-tense fact in upper camel case.
    #[error("event type `{event_type}`: {reason}")]
    Name {
        /// The offending name.
        event_type: String,
        /// What is wrong.
        reason: &'static str,
    },
    /// Organization or project is missing, or given where the scope has none.
    #[error("event type `{event_type}`: {reason}")]
    Scope {
        /// The event's type.
        event_type: String,
        /// What is wrong.
        reason: &'static str,
    },
    /// A schema version below 1.
    #[error("event type `{event_type}`: schema version {version} is below 1")]
    Version {
        /// The event's type.
        event_type: String,
        /// The offending version.
        version: i32,
    },
    /// A field that would not fit a Pub/Sub attribute.
    #[error("{field}: {bytes} bytes as an attribute, at most {limit} fit")]
    AttributeSize {
        /// The attribute.
        field: String,
        /// Its size in bytes.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// A required field is empty.
    #[error("{field}: is empty")]
    Empty {
        /// The field.
        field: &'static str,
    },
    /// The whole envelope is too large; send a reference to an immutable version instead.
    #[error("envelope: {bytes} bytes, at most {limit} fit; send a reference instead")]
    EnvelopeSize {
        /// Its size in bytes.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
}

/// Checks that a name says what the aggregate did (obligations I4, I5, I12).
///
/// # Errors
/// [`ContractError::Name`] with the reason.
pub fn check_event_name(name: &str) -> Result<(), ContractError> {
    let bad = |reason| Err(ContractError::Name { event_type: name.to_owned(), reason });
    if PLATFORM_EVENT_TYPES.contains(&name) {
        return Ok(());
    }
    if name.len() > 128 {
        return bad("is longer than 128 bytes");
    }
    if !name.starts_with(|c: char| c.is_ascii_uppercase()) || !name.bytes().all(|b| b.is_ascii_alphanumeric())
    {
        return bad("is not upper camel case in ASCII letters and digits");
    }
    if name.ends_with("Requested") {
        return bad("names a consumer's need; name what the aggregate did");
    }
    let last = name.rfind(|c: char| c.is_ascii_uppercase()).map_or(name, |at| &name[at..]);
    if last.len() == name.len() {
        return bad("names no aggregate before the verb");
    }
    if !last.ends_with("ed") && !IRREGULAR.contains(&last) {
        return bad("does not end in a past-tense verb");
    }
    Ok(())
}

/// Checks name, version, scope and upcasting path of an event type; call it in a test of every type.
///
/// # Errors
/// The first contract the type breaks.
pub fn check_event<E: Event>() -> Result<(), ContractError> {
    check_event_name(E::TYPE)?;
    let scope = |reason| Err(ContractError::Scope { event_type: E::TYPE.to_owned(), reason });
    match E::SCOPE {
        Scope::Platform if !PLATFORM_EVENT_TYPES.contains(&E::TYPE) => {
            scope("is not one of the platform events")
        }
        Scope::Organization { reason: "" } => scope("an organization scope needs a reason"),
        _ if E::VERSION < 1 => {
            Err(ContractError::Version { event_type: E::TYPE.to_owned(), version: E::VERSION })
        }
        _ => Ok(()),
    }
}

impl Envelope {
    /// Checks identity and sizes before the envelope is stored or sent, so that the broker never has to refuse it.
    ///
    /// # Errors
    /// The first contract the envelope breaks.
    pub fn check(&self) -> Result<(), ContractError> {
        for (field, value) in [
            ("event_type", &self.event_type),
            ("aggregate_type", &self.aggregate_type),
            ("aggregate_id", &self.aggregate_id),
        ] {
            if value.is_empty() {
                return Err(ContractError::Empty { field });
            }
        }
        if self.schema_version < 1 {
            let event_type = self.event_type.clone();
            return Err(ContractError::Version { event_type, version: self.schema_version });
        }
        self.check_scope()?;
        let attributes = self.to_attributes();
        if let Some((field, value)) = attributes.iter().find(|(_, value)| value.len() > MAX_ATTRIBUTE_BYTES) {
            let (field, bytes) = (field.clone(), value.len());
            return Err(ContractError::AttributeSize { field, bytes, limit: MAX_ATTRIBUTE_BYTES });
        }
        let bytes = self.payload.as_str().len()
            + attributes.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>();
        if bytes > MAX_ENVELOPE_BYTES {
            return Err(ContractError::EnvelopeSize { bytes, limit: MAX_ENVELOPE_BYTES });
        }
        Ok(())
    }

    /// Checks the envelope against what its type declares.
    ///
    /// # Errors
    /// [`ContractError::Scope`] when organization or project are missing or not wanted.
    pub fn check_for<E: Event>(&self) -> Result<(), ContractError> {
        let wanted = match E::SCOPE {
            Scope::Project => (true, true),
            Scope::Organization { .. } => (true, false),
            Scope::Platform => (false, false),
        };
        if (self.organization.is_some(), self.project.is_some()) != wanted {
            let reason = match E::SCOPE {
                Scope::Project => "carries both organization and project",
                Scope::Organization { .. } => "carries an organization and no project",
                Scope::Platform => "carries neither organization nor project",
            };
            return Err(ContractError::Scope { event_type: self.event_type.clone(), reason });
        }
        self.check()
    }

    fn check_scope(&self) -> Result<(), ContractError> {
        let reason = match (self.organization, self.project) {
            (None, _) if !PLATFORM_EVENT_TYPES.contains(&self.event_type.as_str()) => {
                "carries no organization"
            }
            (None, Some(_)) => "carries a project without its organization",
            _ => return Ok(()),
        };
        Err(ContractError::Scope { event_type: self.event_type.clone(), reason })
    }
}
