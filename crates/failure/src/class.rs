use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::UnknownName;

/// Why an effect did not succeed, seen by whoever read the wire.
///
/// `Rejected`, `Obsolete`, `Throttled` and `Blocked` are definite: the provider answered, and it did not act. `Unknown`
/// is the opposite and must be chosen for every answer that is not listed, once the request may have left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Passes by itself; the same submission may be presented again.
    Transient,
    /// The provider asks the whole fleet to slow down; costs no attempt.
    Throttled,
    /// Permanent: the provider will not do this, however often it is asked.
    Rejected,
    /// No longer wanted: the rule that made it due does not hold any more.
    Obsolete,
    /// The provider may or may not have acted.
    Unknown,
    /// Credentials or the account itself are refused; parks the provider account, costs no attempt.
    Blocked,
    /// Inputs that cannot be read, a panic or an unsupported version before anything may have left.
    Poison,
}

impl Class {
    /// All classes, in the order of the documentation.
    pub const ALL: [Self; 7] = [
        Self::Transient,
        Self::Throttled,
        Self::Rejected,
        Self::Obsolete,
        Self::Unknown,
        Self::Blocked,
        Self::Poison,
    ];

    /// The stored name: also the metric label.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::Throttled => "throttled",
            Self::Rejected => "rejected",
            Self::Obsolete => "obsolete",
            Self::Unknown => "unknown",
            Self::Blocked => "blocked",
            Self::Poison => "poison",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Class {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        Self::ALL
            .into_iter()
            .find(|class| class.as_str() == name)
            .ok_or_else(|| UnknownName { what: "failure class", name: name.to_owned() })
    }
}

/// What the inputs of an operation mean, and so what a repeated attempt would do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// A frozen instruction: a repetition without the same key may be a second effect.
    Command,
    /// Desired state is reread each time: a repetition converges.
    Reconcile,
    /// A frozen delivery decision: a repetition without the same key may be a second delivery.
    Event,
}

impl Mode {
    /// All modes, in the order of the documentation.
    pub const ALL: [Self; 3] = [Self::Command, Self::Reconcile, Self::Event];

    /// The stored name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Reconcile => "reconcile",
            Self::Event => "event",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Mode {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        Self::ALL
            .into_iter()
            .find(|mode| mode.as_str() == name)
            .ok_or_else(|| UnknownName { what: "mode", name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::{Class, Mode};

    #[test]
    fn the_stored_name_reads_back_and_is_the_serialized_one() {
        for class in Class::ALL {
            assert_eq!(class.as_str().parse(), Ok(class));
            assert_eq!(serde_json::json!(class), class.as_str());
            assert_eq!(class.to_string(), class.as_str());
        }
        for mode in Mode::ALL {
            assert_eq!(mode.as_str().parse(), Ok(mode));
            assert_eq!(serde_json::json!(mode), mode.as_str());
            assert_eq!(mode.to_string(), mode.as_str());
        }
    }

    #[test]
    fn an_unknown_name_says_what_was_read() {
        assert_eq!(
            "lost".parse::<Class>().map_err(|error| error.to_string()),
            Err("unknown failure class `lost`".to_owned())
        );
        assert!("Command".parse::<Mode>().is_err());
    }
}
