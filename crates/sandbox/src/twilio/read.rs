//! Answers of calls that change nothing.

use serde_json::Value;

use super::change::Participant;
use super::endpoint::Endpoint;
use super::error::ApiError;
use super::page::page;
use super::render;
use super::world::{Room, World};
use crate::stripe::Params;

/// A call that reads, with what it needs to be answered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) path: &'a str,
    pub(crate) params: &'a Params,
    pub(crate) base_url: &'a str,
    pub(crate) now_ms: i64,
}

/// The body of the answer.
pub(crate) fn read(endpoint: Endpoint<'_>, world: &World, asked: Asked<'_>) -> Result<Value, ApiError> {
    let url = format!("{}{}", asked.base_url, asked.path);
    match endpoint {
        Endpoint::ListConversations => {
            let rooms: Vec<(u64, &Room)> = world
                .rooms
                .iter()
                .filter(|(_, room)| room.is.visible_ms <= asked.now_ms)
                .map(|(n, room)| (*n, room))
                .collect();
            page("conversations", &url, asked.params, &rooms, |room| {
                render::conversation(room, asked.base_url, asked.now_ms)
            })
        }
        Endpoint::FetchConversation(id) => {
            Ok(render::conversation(room(world, id, asked)?, asked.base_url, asked.now_ms))
        }
        Endpoint::ListParticipants(id) => {
            let room = room(world, id, asked)?;
            let mut listed: Vec<(u64, &Participant)> =
                shown(room, asked.now_ms).map(|member| (member.n, member)).collect();
            listed.sort_unstable_by_key(|(n, _)| *n);
            page("participants", &url, asked.params, &listed, |member| {
                render::participant(room, member, asked.base_url)
            })
        }
        Endpoint::FetchParticipant { conversation, id } => {
            let room = room(world, conversation, asked)?;
            let found = shown(room, asked.now_ms)
                .find(|member| member.sid == id || member.identity.as_deref() == Some(id));
            let member = found.ok_or_else(|| ApiError::missing(asked.path))?;
            Ok(render::participant(room, member, asked.base_url))
        }
        _ => Err(ApiError::missing(asked.path)),
    }
}

/// The conversation, once it is visible.
pub(crate) fn room<'w>(world: &'w World, id: &str, asked: Asked<'_>) -> Result<&'w Room, ApiError> {
    let room = world.find(id).filter(|room| room.is.visible_ms <= asked.now_ms);
    room.ok_or_else(|| ApiError::missing(asked.path))
}

/// Memberships as reads see them: new ones late, ended ones for too long.
fn shown(room: &Room, now_ms: i64) -> impl Iterator<Item = &Participant> {
    let present = room.members.iter().filter(move |member| member.visible_ms <= now_ms);
    let leaving = room.leaving.iter().filter(move |(_, until)| now_ms < *until);
    present.chain(leaving.map(|(member, _)| member))
}
