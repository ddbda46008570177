//! Typed events.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Whose event it is. `Project` is the rule; everything else says why (obligations I24 and I25).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Carries organization and project.
    Project,
    /// Carries an organization and no project, for this reason.
    Organization {
        /// Why no project can be named.
        reason: &'static str,
    },
    /// Carries neither; only the three types in [`crate::PLATFORM_EVENT_TYPES`].
    Platform,
}

/// Lifts a payload of a retired version to the next one.
#[derive(Clone, Copy, Debug)]
pub struct Upcast {
    /// The retired version; the result has version `from + 1`.
    pub from: i32,
    /// The change. An error text says what was missing, without the payload's values.
    pub apply: fn(Value) -> Result<Value, String>,
}

/// An immutable fact about an aggregate, in the past tense.
///
/// The payload carries facts that consumers may filter on, no routing hints (obligations I4 to I12).
pub trait Event: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Name of the fact: upper camel case, past tense.
    const TYPE: &'static str;
    /// Current version of the payload's schema, from 1.
    const VERSION: i32;
    /// Whose event it is.
    const SCOPE: Scope = Scope::Project;
    /// How to read retired versions, one step each. A version without a path up to [`Event::VERSION`] waits for a
    /// capable build instead of being poison.
    const UPCASTS: &'static [Upcast] = &[];
}
