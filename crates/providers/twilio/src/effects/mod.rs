//! One function per effect: its request, and what its answer is believed to say.

mod conversation;
mod listing;
mod participant;

use backline_failure::Failure;

pub use conversation::{create_conversation, delete_conversation, fetch_conversation, set_state};
pub use listing::list_participants;
pub use participant::{add_participant, remove_participant};

use crate::failure_table::{Asked, unreadable};
use crate::reply::Reply;
use crate::transport::invalid;
use crate::{ConversationSid, Participant};

/// A success that speaks of something else. Names the field, never its value.
fn differs(reply: &Reply, asked: Asked, what: &str) -> Failure {
    unreadable(reply, asked, "twilio.answer_differs", &format!("{what} is not what was asked for"))
}

fn check_attributes(attributes: Option<&str>, limit: usize) -> Result<(), Failure> {
    match attributes {
        Some(text) if text.len() > limit => Err(invalid(format!("attributes are longer than {limit} bytes"))),
        Some(text) if serde_json::from_str::<serde::de::IgnoredAny>(text).is_err() => {
            Err(invalid("attributes are not JSON"))
        }
        _ => Ok(()),
    }
}

/// A member of another conversation proves nothing about this one.
fn check_conversation(
    reply: &Reply,
    asked: Asked,
    conversation: &ConversationSid,
    participant: &Participant,
) -> Result<(), Failure> {
    if participant.conversation_sid == *conversation {
        Ok(())
    } else {
        Err(differs(reply, asked, "conversation_sid"))
    }
}
