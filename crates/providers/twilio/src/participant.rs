//! Participants: identified by a chat identity or an address pair, removed by the SID of their membership.

use serde::{Deserialize, Serialize};

use crate::{ConversationSid, ParticipantSid};

/// Who a participant is to Twilio: what makes adding them twice impossible.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Who {
    /// A chat user.
    Chat {
        /// Unique within the conversation, 1 to 256 characters.
        identity: String,
    },
    /// Somebody reached over SMS or another channel.
    Messaging {
        /// Theirs: E.164, or with a channel's prefix such as `whatsapp:`.
        address: String,
        /// Ours, in the same form. The pair may be in one active conversation of the account at a time.
        proxy_address: String,
    },
}

/// Who is to be added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewParticipant {
    /// Their identity at Twilio.
    pub who: Who,
    /// JSON, at most 4 KiB.
    pub attributes: Option<String>,
}

/// A member as Twilio shows it. People may have added kinds that [`Who`] does not know.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Participant {
    /// This membership.
    pub sid: ParticipantSid,
    /// The conversation it belongs to.
    pub conversation_sid: ConversationSid,
    /// Of a chat user.
    pub identity: Option<String>,
    /// Of somebody reached over a channel.
    pub messaging_binding: Option<Binding>,
}

/// How a participant is reached.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Binding {
    /// Theirs.
    #[serde(default)]
    pub address: Option<String>,
    /// Ours.
    #[serde(default)]
    pub proxy_address: Option<String>,
}

impl Participant {
    /// Who this is, if it is a kind that can be asked for here.
    #[must_use]
    pub fn who(&self) -> Option<Who> {
        if let Some(identity) = &self.identity {
            return Some(Who::Chat { identity: identity.clone() });
        }
        let binding = self.messaging_binding.as_ref()?;
        let (address, proxy_address) = (binding.address.clone()?, binding.proxy_address.clone()?);
        Some(Who::Messaging { address, proxy_address })
    }
}

/// What became of an addition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Addition {
    /// This request added them.
    Added(Participant),
    /// 50433, 50437: they are a member already.
    AlreadyPresent,
    /// There is no such conversation, or it is so new that Twilio does not show it yet.
    ConversationAbsent,
    /// 50377: it is closed, and nobody joins any more.
    ConversationClosed,
}

/// What became of a removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// This request ended the membership.
    Removed,
    /// 404, 50432: there is no such membership, or no such conversation any more.
    AlreadyAbsent,
    /// 50377: the conversation is closed and takes no changes.
    ConversationClosed,
}
