use backline_failure::{Call, Failure};

use super::{check_attributes, check_conversation, differs};
use crate::failure_table::{Asked, Fact, out_of_place};
use crate::form::form;
use crate::transport::{Said, invalid};
use crate::{Addition, ConversationSid, NewParticipant, Participant, ParticipantSid, Removal, Twilio, Who};

/// Longest identity, in characters.
const IDENTITY_LIMIT: usize = 256;

/// Longest attributes of a participant, in bytes.
const ATTRIBUTES_LIMIT: usize = 4 * 1024;

/// Adds a participant.
///
/// # Errors
/// Unknown if they may be a member now: [`list_participants`](crate::list_participants) tells. An address pair that is
/// bound in another active conversation (50416, 50425) is rejected with `twilio.address_bound_elsewhere`: a person
/// decides which of the two is right.
pub async fn add_participant(
    twilio: &Twilio,
    call: &Call,
    conversation: &ConversationSid,
    new: &NewParticipant,
) -> Result<Addition, Failure> {
    check_attributes(new.attributes.as_deref(), ATTRIBUTES_LIMIT)?;
    let attributes = ("Attributes", new.attributes.as_deref());
    let form = match &new.who {
        Who::Chat { identity } => {
            if identity.is_empty() || identity.chars().count() > IDENTITY_LIMIT {
                return Err(invalid("identity is empty or longer than 256 characters"));
            }
            form(&[("Identity", Some(identity)), attributes])
        }
        Who::Messaging { address, proxy_address } => {
            if address.is_empty() || proxy_address.is_empty() {
                return Err(invalid("address or proxy_address is empty"));
            }
            form(&[
                ("MessagingBinding.Address", Some(address)),
                ("MessagingBinding.ProxyAddress", Some(proxy_address)),
                attributes,
            ])
        }
    };
    match twilio.post(call, twilio.url(&[conversation.as_str(), "Participants"])?, form).await? {
        Said::Yes(reply) => {
            let added: Participant = reply.parse(Asked::Write)?;
            check_conversation(&reply, Asked::Write, conversation, &added)?;
            if added.who().as_ref() != Some(&new.who) {
                return Err(differs(&reply, Asked::Write, "participant"));
            }
            Ok(Addition::Added(added))
        }
        Said::Already(Fact::Present, _) => Ok(Addition::AlreadyPresent),
        Said::Already(Fact::Absent, _) => Ok(Addition::ConversationAbsent),
        Said::Already(Fact::Closed, _) => Ok(Addition::ConversationClosed),
        Said::Already(fact @ Fact::NameTaken, reply) => Err(out_of_place(&reply, fact)),
    }
}

/// Ends one membership. By its SID, so that a late request cannot end a later membership of the same person.
///
/// # Errors
/// Unknown if it may have ended.
pub async fn remove_participant(
    twilio: &Twilio,
    call: &Call,
    conversation: &ConversationSid,
    participant: &ParticipantSid,
) -> Result<Removal, Failure> {
    let url = twilio.url(&[conversation.as_str(), "Participants", participant.as_str()])?;
    match twilio.delete(call, url).await? {
        Said::Yes(_) => Ok(Removal::Removed),
        Said::Already(Fact::Absent, _) => Ok(Removal::AlreadyAbsent),
        Said::Already(Fact::Closed, _) => Ok(Removal::ConversationClosed),
        Said::Already(fact, reply) => Err(out_of_place(&reply, fact)),
    }
}
