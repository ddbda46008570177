//! Twilio Conversations as a provider: typed requests, one failure table, one file per effect.
//!
//! Twilio has no idempotency keys and no preconditions. What keeps a repeated write single is identity: a conversation's
//! unique name, a participant's identity or address pair, a SID. The second write of the same thing is refused with
//! "already there", "already gone" or "already closed". Those answers are facts here, not failures and not successes:
//! each write returns what it found, and only the caller knows whether that is what was wanted.
//!
//! ```no_run
//! # async fn join(twilio: &backline_twilio::Twilio, call: &backline_failure::Call)
//! #     -> Result<(), Box<dyn std::error::Error>> {
//! use backline_twilio::{Addition, ConversationSid, NewParticipant, Who, add_participant};
//!
//! let conversation: ConversationSid = "CH0123456789abcdef0123456789abcdef".parse()?;
//! let member = NewParticipant { who: Who::Chat { identity: "user-17".to_owned() }, attributes: None };
//! match add_participant(twilio, call, &conversation, &member).await? {
//!     Addition::Added(_) | Addition::AlreadyPresent => {} // wanted: present
//!     Addition::ConversationAbsent | Addition::ConversationClosed => {} // for the caller to judge
//! }
//! # Ok(()) }
//! ```
//!
//! One thing an attempt should know: Twilio may show a new conversation or participant to reads later than to writes
//! ([`LOOKUP_LAG`]), and a request that was given up may still act ([`LINGER`]).

mod client;
mod conversation;
mod credentials;
mod effects;
mod failure_table;
mod form;
mod participant;
mod reply;
mod sid;
mod transport;

use std::time::Duration;

pub use client::{Config, SetupError, Twilio};
pub use conversation::{
    Conversation, ConversationRef, Creation, Deletion, NewConversation, State, StateChange,
};
pub use credentials::Credentials;
pub use effects::*;
pub use participant::{Addition, Binding, NewParticipant, Participant, Removal, Who};
pub use sid::{BadSid, ConversationSid, ParticipantSid};

/// Header that names the operation of a request: participants have no field of their own for it. Twilio ignores it;
/// whoever compares its request log with ours, or the stand-in's journal, does not.
pub const OPERATION_HEADER: &str = "x-backline-operation";

/// How late a request may still take effect after we stopped waiting for it. Twilio publishes no figure; its own client
/// libraries give up after 30 s or less, and this is that doubled.
pub const LINGER: Duration = Duration::from_secs(60);

/// How long after a write a read may not show it yet. Not published; users have seen a new conversation answer 404 to
/// the next request (<https://github.com/twilio/twilio-node/issues/936>), for seconds rather than minutes.
pub const LOOKUP_LAG: Duration = Duration::from_secs(30);
