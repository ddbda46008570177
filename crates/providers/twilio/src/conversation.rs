//! Conversations: created under a unique name, closed for good, deleted with everything in them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ConversationSid;

/// What a conversation can be. Twilio's `initializing` exists only for moments after a kind of creation that is not
/// used here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Being set up by Twilio; cannot be asked for.
    Initializing,
    /// Set aside; may become active again.
    Inactive,
    /// In use.
    Active,
    /// For good: no write but deletion is taken after it.
    Closed,
}

impl State {
    /// The wire name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Initializing => "initializing",
            Self::Inactive => "inactive",
            Self::Active => "active",
            Self::Closed => "closed",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A conversation as Twilio shows it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Conversation {
    /// Its identity at Twilio.
    pub sid: ConversationSid,
    /// Its identity of our choosing, if it was given one.
    pub unique_name: Option<String>,
    /// State when the answer was written.
    pub state: State,
    pub(crate) account_sid: String,
}

/// What a new conversation is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewConversation {
    /// What makes a repeated creation harmless, so it is required: unique within the account's default service, 1 to
    /// 256 characters, and not shaped like a SID.
    pub unique_name: String,
    /// For people.
    pub friendly_name: Option<String>,
    /// JSON, at most 16 KiB.
    pub attributes: Option<String>,
}

/// How a conversation is named in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConversationRef {
    /// By its SID.
    Sid(ConversationSid),
    /// By its unique name: how an unknown creation is resolved.
    UniqueName(String),
}

/// What became of a creation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Creation {
    /// This request made it.
    Created(Conversation),
    /// 50353: one with this name exists, perhaps made by an earlier attempt; fetch it by name.
    NameTaken,
}

/// What became of a change of state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StateChange {
    /// It has the state asked for.
    Changed(Conversation),
    /// 50377: it is closed and stays so. What was wanted only if closing was.
    AlreadyClosed,
    /// There is no such conversation.
    Absent,
}

/// What became of a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    /// This request deleted it, its participants and messages.
    Deleted,
    /// There is none: deleted before, or never made.
    AlreadyAbsent,
}
