//! What a call changes, as the journal keeps it.

use serde::{Deserialize, Serialize};

use crate::control::ConversationState;

/// States of a conversation that calls can see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    Inactive,
    Active,
    Closed,
}

impl State {
    /// The wire name as a state that can be asked for; `initializing` cannot.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        [Self::Inactive, Self::Active, Self::Closed].into_iter().find(|state| state.as_str() == text)
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Inactive => "inactive",
            Self::Active => "active",
            Self::Closed => "closed",
        }
    }

    /// `None` is deletion.
    pub(crate) fn from_outside(state: ConversationState) -> Option<Self> {
        match state {
            ConversationState::Active => Some(Self::Active),
            ConversationState::Inactive => Some(Self::Inactive),
            ConversationState::Closed => Some(Self::Closed),
            ConversationState::Deleted => None,
        }
    }
}

/// A conversation without its participants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Conversation {
    /// Number of creation; the SID is made of it.
    pub(crate) n: u64,
    pub(crate) sid: String,
    pub(crate) unique_name: Option<String>,
    pub(crate) friendly_name: Option<String>,
    pub(crate) attributes: String,
    pub(crate) messaging_service_sid: Option<String>,
    /// As last written; timers may have moved it on since.
    pub(crate) state: State,
    /// From `updated_ms` to inactive.
    pub(crate) inactive_after_ms: Option<i64>,
    /// From `updated_ms` to closed.
    pub(crate) closed_after_ms: Option<i64>,
    pub(crate) created_ms: i64,
    pub(crate) updated_ms: i64,
    /// No call sees the conversation earlier.
    pub(crate) visible_ms: i64,
}

/// A membership.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Participant {
    pub(crate) n: u64,
    pub(crate) sid: String,
    pub(crate) identity: Option<String>,
    /// Theirs and ours.
    pub(crate) pair: Option<(String, String)>,
    pub(crate) attributes: String,
    pub(crate) role_sid: Option<String>,
    pub(crate) created_ms: i64,
    /// No list or fetch sees the membership earlier.
    pub(crate) visible_ms: i64,
}

/// One durable change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "did", rename_all = "snake_case")]
pub(crate) enum Change {
    /// Created or updated: as it is right after the call.
    Conversation { is: Conversation },
    /// Gone with everything in it.
    ConversationDeleted { conversation: String, at_ms: i64 },
    /// Joined.
    Joined { conversation: String, is: Participant },
    /// Left; lists still show the membership until then.
    Left { conversation: String, participant: String, shown_until_ms: i64 },
}

impl Change {
    /// SID of the conversation.
    pub(crate) fn conversation(&self) -> &str {
        match self {
            Self::Conversation { is } => &is.sid,
            Self::ConversationDeleted { conversation, .. }
            | Self::Joined { conversation, .. }
            | Self::Left { conversation, .. } => conversation,
        }
    }

    /// SID of what changed.
    pub(crate) fn object(&self) -> &str {
        match self {
            Self::Joined { is, .. } => &is.sid,
            Self::Left { participant, .. } => participant,
            other => other.conversation(),
        }
    }
}
