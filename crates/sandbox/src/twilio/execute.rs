//! What writes do to conversations; those to participants are in `members`.

use super::change::{Change, Conversation, State};
use super::endpoint::Endpoint;
use super::error::ApiError;
use super::read::{Asked, room};
use super::world::World;
use super::{members, sid, timer};

const NAME_LIMIT: usize = 256;
const ATTRIBUTES_LIMIT: usize = 16 * 1024;

/// Decides what a write changes; changes nothing itself. What is new stays invisible for `hide_ms`, and what leaves
/// stays listed as long.
pub(crate) fn execute(
    endpoint: Endpoint<'_>,
    world: &World,
    asked: Asked<'_>,
    hide_ms: i64,
) -> Result<Change, ApiError> {
    match endpoint {
        Endpoint::CreateConversation => create(world, asked, hide_ms),
        Endpoint::UpdateConversation(id) => {
            let room = room(world, id, asked)?;
            if room.state(asked.now_ms) == State::Closed {
                return Err(ApiError::closed());
            }
            let before = Conversation { state: room.state(asked.now_ms), ..room.is.clone() };
            Ok(Change::Conversation { is: fill(before, world, asked)? })
        }
        Endpoint::DeleteConversation(id) => Ok(Change::ConversationDeleted {
            conversation: room(world, id, asked)?.is.sid.clone(),
            at_ms: asked.now_ms,
        }),
        Endpoint::AddParticipant(id) => members::add(world, room(world, id, asked)?, asked, hide_ms),
        Endpoint::RemoveParticipant { conversation, id } => {
            members::remove(room(world, conversation, asked)?, id, asked, hide_ms)
        }
        _ => Err(ApiError::missing(asked.path)),
    }
}

fn create(world: &World, asked: Asked<'_>, hide_ms: i64) -> Result<Change, ApiError> {
    let timed = ["Timers.Inactive", "Timers.Closed"].iter().any(|name| asked.params.get(name).is_some());
    if timed && asked.params.get("State").is_none() {
        return Err(ApiError::new(400, 50382, "Timers need a State"));
    }
    let n = world.next_number();
    let blank = Conversation {
        n,
        sid: sid("CH", n),
        unique_name: None,
        friendly_name: None,
        attributes: "{}".to_owned(),
        messaging_service_sid: None,
        state: State::Active,
        inactive_after_ms: None,
        closed_after_ms: None,
        created_ms: asked.now_ms,
        updated_ms: asked.now_ms,
        visible_ms: asked.now_ms.saturating_add(hide_ms),
    };
    Ok(Change::Conversation { is: fill(blank, world, asked)? })
}

/// Takes the parameters over.
fn fill(mut is: Conversation, world: &World, asked: Asked<'_>) -> Result<Conversation, ApiError> {
    let params = asked.params;
    if let Some(name) = params.get("UniqueName") {
        check_unique_name(name, &is, world)?;
        is.unique_name = Some(name.to_owned());
    }
    if let Some(name) = params.text("FriendlyName") {
        if name.chars().count() > NAME_LIMIT {
            return Err(ApiError::parameter("FriendlyName is longer than 256 characters"));
        }
        is.friendly_name = Some(name);
    }
    if let Some(attributes) = params.get("Attributes") {
        is.attributes = check_attributes(attributes, ATTRIBUTES_LIMIT)?;
    }
    if let Some(service) = params.text("MessagingServiceSid") {
        is.messaging_service_sid = Some(service);
    }
    if let Some(state) = params.get("State") {
        is.state = State::parse(state)
            .ok_or_else(|| ApiError::parameter("Invalid State: must be inactive, active or closed"))?;
    }
    for (name, least_ms, field) in [
        ("Timers.Inactive", 60_000, &mut is.inactive_after_ms),
        ("Timers.Closed", 600_000, &mut is.closed_after_ms),
    ] {
        if let Some(text) = params.get(name) {
            let span = timer::millis(text).filter(|span| *span >= least_ms);
            *field = Some(span.ok_or_else(|| ApiError::parameter(format!("Invalid {name}")))?);
        }
    }
    is.updated_ms = asked.now_ms;
    Ok(is)
}

fn check_unique_name(name: &str, is: &Conversation, world: &World) -> Result<(), ApiError> {
    let sid_shaped = name.len() == 34
        && name.starts_with("CH")
        && name.bytes().skip(2).all(|byte| byte.is_ascii_hexdigit());
    if sid_shaped {
        return Err(ApiError::new(400, 50390, "Unique name must not look like a SID"));
    }
    if name.is_empty() || name.chars().count() > NAME_LIMIT {
        return Err(ApiError::parameter("UniqueName must have 1 to 256 characters"));
    }
    match world.find(name) {
        Some(other) if other.is.n != is.n => {
            Err(ApiError::new(409, 50353, "Conversation with provided unique name already exists"))
        }
        _ => Ok(()),
    }
}

pub(crate) fn check_attributes(text: &str, limit: usize) -> Result<String, ApiError> {
    if text.len() > limit || serde_json::from_str::<serde::de::IgnoredAny>(text).is_err() {
        return Err(ApiError::parameter(format!("Attributes must be JSON of at most {limit} bytes")));
    }
    Ok(text.to_owned())
}
