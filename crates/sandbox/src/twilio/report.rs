//! The whole state for whoever checks it, without lags and pages.

use serde_json::{Value, json};

use super::render::date;
use super::state::Twilio;
use super::world::Room;

impl Twilio {
    /// Body of `GET /twilio`.
    pub(crate) fn report(&self) -> Value {
        let now_ms = self.world.clock.now_ms();
        let conversations: Vec<Value> = self.world.rooms.values().map(|room| show(room, now_ms)).collect();
        let deleted = self.world.graves.iter().map(|grave| {
            let mut shown = show(&grave.room, grave.at_ms);
            shown["deleted_at"] = date(grave.at_ms);
            shown
        });
        let deleted: Vec<Value> = deleted.collect();
        json!({"conversations": conversations, "deleted": deleted})
    }
}

fn show(room: &Room, now_ms: i64) -> Value {
    let participants = room.members.iter().map(|member| {
        json!({
            "sid": member.sid,
            "identity": member.identity,
            "address": member.pair.as_ref().map(|pair| &pair.0),
            "proxy_address": member.pair.as_ref().map(|pair| &pair.1),
        })
    });
    json!({
        "sid": room.is.sid,
        "unique_name": room.is.unique_name,
        "state": room.state(now_ms).as_str(),
        // Every state it was written to, in order.
        "states": room.states,
        "participants": participants.collect::<Vec<_>>(),
    })
}
