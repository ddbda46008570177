//! Who joins and who leaves. Limits: <https://www.twilio.com/docs/conversations-classic/conversations-limits>.

use super::change::{Change, Participant, State};
use super::error::ApiError;
use super::execute::check_attributes;
use super::read::Asked;
use super::sid;
use super::world::{Room, World};

const MOST: usize = 1_000;
const MOST_NON_CHAT: usize = 50;
const IDENTITY_LIMIT: usize = 256;
const ATTRIBUTES_LIMIT: usize = 4 * 1024;

pub(super) fn add(world: &World, room: &Room, asked: Asked<'_>, hide_ms: i64) -> Result<Change, ApiError> {
    let params = asked.params;
    let identity = params.text("Identity");
    let pair = match (params.text("MessagingBinding.Address"), params.text("MessagingBinding.ProxyAddress")) {
        (Some(address), Some(proxy)) if !address.is_empty() && !proxy.is_empty() => Some((address, proxy)),
        (None, None) => None,
        _ => return Err(ApiError::parameter("MessagingBinding needs Address and ProxyAddress")),
    };
    let named = identity.as_ref().is_some_and(|name| (1..=IDENTITY_LIMIT).contains(&name.chars().count()));
    if named == pair.is_some() {
        return Err(ApiError::parameter("A participant has either an Identity or a MessagingBinding"));
    }
    let attributes = match params.get("Attributes") {
        Some(text) => check_attributes(text, ATTRIBUTES_LIMIT)?,
        None => "{}".to_owned(),
    };
    if room.state(asked.now_ms) == State::Closed {
        return Err(ApiError::closed());
    }
    if named && room.members.iter().any(|member| member.identity == identity) {
        return Err(ApiError::new(409, 50433, "Participant already exists"));
    }
    if let Some(pair) = &pair {
        check_pair(world, room, pair, asked.now_ms)?;
    }
    if room.members.len() >= MOST {
        return Err(ApiError::new(400, 50417, "Number of participants limit exceeded"));
    }
    let non_chat = room.members.iter().filter(|member| member.pair.is_some()).count();
    if pair.is_some() && non_chat >= MOST_NON_CHAT {
        return Err(ApiError::new(400, 50418, "Number of non-chat participants limit exceeded"));
    }
    let n = world.next_number();
    let is = Participant {
        n,
        sid: sid("MB", n),
        identity,
        pair,
        attributes,
        role_sid: params.text("RoleSid"),
        created_ms: asked.now_ms,
        visible_ms: asked.now_ms.saturating_add(hide_ms),
    };
    Ok(Change::Joined { conversation: room.is.sid.clone(), is })
}

/// A pair may be in one conversation that is not closed, once.
fn check_pair(world: &World, room: &Room, pair: &(String, String), now_ms: i64) -> Result<(), ApiError> {
    let has = |room: &Room| room.members.iter().any(|member| member.pair.as_ref() == Some(pair));
    if has(room) {
        return Err(ApiError::new(409, 50437, "Participant with this address and proxy already exists"));
    }
    if world.rooms.values().any(|other| other.state(now_ms) != State::Closed && has(other)) {
        let message =
            "A binding for this participant and proxy address already exists in another conversation";
        return Err(ApiError::new(409, 50416, message));
    }
    Ok(())
}

pub(super) fn remove(room: &Room, id: &str, asked: Asked<'_>, hide_ms: i64) -> Result<Change, ApiError> {
    let found = room.members.iter().find(|member| member.sid == id || member.identity.as_deref() == Some(id));
    let member = found.ok_or_else(|| ApiError::missing(asked.path))?;
    if room.state(asked.now_ms) == State::Closed {
        return Err(ApiError::closed());
    }
    Ok(Change::Left {
        conversation: room.is.sid.clone(),
        participant: member.sid.clone(),
        shown_until_ms: asked.now_ms.saturating_add(hide_ms),
    })
}
