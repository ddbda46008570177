//! Objects as the API shows them: every field of Twilio's schema and no other.

use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::change::{Conversation, Participant};
use super::world::Room;
use super::{ACCOUNT_SID, sid};

/// `2026-11-30T12:00:00Z`: Twilio shows whole seconds.
pub(crate) fn date(ms: i64) -> Value {
    let at = OffsetDateTime::from_unix_timestamp(ms.div_euclid(1_000));
    at.ok().and_then(|at| at.format(&Rfc3339).ok()).map_or(Value::Null, Value::String)
}

pub(crate) fn conversation(room: &Room, base_url: &str, now_ms: i64) -> Value {
    let is = &room.is;
    let url = format!("{base_url}/v1/Conversations/{}", is.sid);
    let links: serde_json::Map<String, Value> = ["Participants", "Messages", "Webhooks", "Export"]
        .into_iter()
        .map(|part| (part.to_lowercase(), json!(format!("{url}/{part}"))))
        .collect();
    json!({
        "sid": is.sid,
        "account_sid": ACCOUNT_SID,
        "chat_service_sid": sid("IS", 1),
        "messaging_service_sid": is.messaging_service_sid.clone().unwrap_or_else(|| sid("MG", 1)),
        "friendly_name": is.friendly_name,
        "unique_name": is.unique_name,
        "attributes": is.attributes,
        "state": room.state(now_ms).as_str(),
        "date_created": date(is.created_ms),
        "date_updated": date(is.updated_ms),
        "timers": timers(is),
        "bindings": {},
        "url": url,
        "links": links,
    })
}

fn timers(is: &Conversation) -> Value {
    let due = [("date_inactive", is.inactive_after_ms), ("date_closed", is.closed_after_ms)];
    due.into_iter()
        .filter_map(|(name, after)| Some((name.to_owned(), date(is.updated_ms + after?))))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

pub(crate) fn participant(room: &Room, member: &Participant, base_url: &str) -> Value {
    let binding = member.pair.as_ref().map(|(address, proxy)| {
        let channel = address.split_once(':').map_or("sms", |(channel, _)| channel);
        json!({"type": channel, "address": address, "proxy_address": proxy})
    });
    json!({
        "sid": member.sid,
        "account_sid": ACCOUNT_SID,
        "conversation_sid": room.is.sid,
        "identity": member.identity,
        "attributes": member.attributes,
        "messaging_binding": binding,
        "role_sid": member.role_sid.clone().unwrap_or_else(|| sid("RL", 1)),
        "date_created": date(member.created_ms),
        "date_updated": date(member.created_ms),
        "url": format!("{base_url}/v1/Conversations/{}/Participants/{}", room.is.sid, member.sid),
        "last_read_message_index": null,
        "last_read_timestamp": null,
    })
}
