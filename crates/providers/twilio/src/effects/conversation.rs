use backline_failure::{Call, Failure};

use super::{check_attributes, differs};
use crate::failure_table::{Asked, Fact, out_of_place};
use crate::form::form;
use crate::reply::Reply;
use crate::transport::{Said, invalid};
use crate::{
    Conversation, ConversationRef, ConversationSid, Creation, Deletion, NewConversation, State, StateChange,
    Twilio,
};

/// Longest unique or friendly name, in characters (<https://www.twilio.com/docs/conversations-classic>).
const NAME_LIMIT: usize = 256;

/// Longest attributes, in bytes.
const ATTRIBUTES_LIMIT: usize = 16 * 1024;

/// Creates a conversation under its unique name.
///
/// # Errors
/// Unknown if it may exist now: [`fetch_conversation`] by name tells.
pub async fn create_conversation(
    twilio: &Twilio,
    call: &Call,
    new: &NewConversation,
) -> Result<Creation, Failure> {
    check_name(&new.unique_name)?;
    if new.friendly_name.as_ref().is_some_and(|name| name.chars().count() > NAME_LIMIT) {
        return Err(invalid("friendly_name is longer than 256 characters"));
    }
    check_attributes(new.attributes.as_deref(), ATTRIBUTES_LIMIT)?;
    let form = form(&[
        ("UniqueName", Some(&new.unique_name)),
        ("FriendlyName", new.friendly_name.as_deref()),
        ("Attributes", new.attributes.as_deref()),
    ]);
    match twilio.post(call, twilio.url(&[])?, form).await? {
        Said::Yes(reply) => {
            let made = believe(twilio, &reply, Asked::Write)?;
            if made.unique_name.as_deref() != Some(&new.unique_name) {
                return Err(differs(&reply, Asked::Write, "unique_name"));
            }
            Ok(Creation::Created(made))
        }
        Said::Already(Fact::NameTaken, _) => Ok(Creation::NameTaken),
        Said::Already(fact, reply) => Err(out_of_place(&reply, fact)),
    }
}

/// The conversation, or `None` if Twilio says that there is none; a new one may be invisible for a moment.
///
/// # Errors
/// Never unknown: a read has no effect.
pub async fn fetch_conversation(
    twilio: &Twilio,
    call: &Call,
    which: &ConversationRef,
) -> Result<Option<Conversation>, Failure> {
    let named = match which {
        ConversationRef::Sid(sid) => sid.as_str(),
        ConversationRef::UniqueName(name) => {
            check_name(name)?;
            name
        }
    };
    match twilio.get(call, twilio.url(&[named])?).await? {
        Said::Yes(reply) => {
            let found = believe(twilio, &reply, Asked::Read)?;
            let same = match which {
                ConversationRef::Sid(sid) => found.sid == *sid,
                ConversationRef::UniqueName(name) => found.unique_name.as_ref() == Some(name),
            };
            if same { Ok(Some(found)) } else { Err(differs(&reply, Asked::Read, "conversation")) }
        }
        Said::Already(Fact::Absent, _) => Ok(None),
        Said::Already(fact, reply) => Err(out_of_place(&reply, fact)),
    }
}

/// Makes a conversation active or inactive, or closes it for good.
///
/// # Errors
/// Unknown if the state may have changed.
pub async fn set_state(
    twilio: &Twilio,
    call: &Call,
    conversation: &ConversationSid,
    state: State,
) -> Result<StateChange, Failure> {
    if state == State::Initializing {
        return Err(invalid("state `initializing` cannot be asked for"));
    }
    let url = twilio.url(&[conversation.as_str()])?;
    match twilio.post(call, url, form(&[("State", Some(state.as_str()))])).await? {
        Said::Yes(reply) => {
            let changed = believe(twilio, &reply, Asked::Write)?;
            if changed.sid != *conversation || changed.state != state {
                return Err(differs(&reply, Asked::Write, "conversation or state"));
            }
            Ok(StateChange::Changed(changed))
        }
        Said::Already(Fact::Closed, _) => Ok(StateChange::AlreadyClosed),
        Said::Already(Fact::Absent, _) => Ok(StateChange::Absent),
        Said::Already(fact, reply) => Err(out_of_place(&reply, fact)),
    }
}

/// Deletes a conversation, whatever its state, with its participants and messages.
///
/// # Errors
/// Unknown if it may be gone.
pub async fn delete_conversation(
    twilio: &Twilio,
    call: &Call,
    conversation: &ConversationSid,
) -> Result<Deletion, Failure> {
    match twilio.delete(call, twilio.url(&[conversation.as_str()])?).await? {
        Said::Yes(_) => Ok(Deletion::Deleted),
        Said::Already(Fact::Absent, _) => Ok(Deletion::AlreadyAbsent),
        Said::Already(fact, reply) => Err(out_of_place(&reply, fact)),
    }
}

fn believe(twilio: &Twilio, reply: &Reply, asked: Asked) -> Result<Conversation, Failure> {
    let conversation: Conversation = reply.parse(asked)?;
    if conversation.account_sid == twilio.account_sid {
        Ok(conversation)
    } else {
        Err(differs(reply, asked, "account_sid"))
    }
}

fn check_name(name: &str) -> Result<(), Failure> {
    if name.is_empty() || name.chars().count() > NAME_LIMIT || matches!(name, "." | "..") {
        return Err(invalid("unique_name is empty, a dot segment or longer than 256 characters"));
    }
    if name.parse::<ConversationSid>().is_ok() {
        return Err(invalid("unique_name is shaped like a SID, which Twilio refuses with 50390"));
    }
    Ok(())
}
