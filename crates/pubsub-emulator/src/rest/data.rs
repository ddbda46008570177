//! REST calls that move messages, for curl and simple clients.

use super::Call;
use crate::broker::Broker;
use crate::grpc::{acknowledge, modify_deadline, pull};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use googleapis_tonic_google_pubsub_v1::google::pubsub::v1 as pb;
use prost::Message;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tonic::Status;

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Body {
    messages: Vec<Published>,
    ack_ids: Vec<String>,
    ack_deadline_seconds: i32,
    max_messages: i32,
    return_immediately: bool,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Published {
    data: String,
    attributes: BTreeMap<String, String>,
    ordering_key: String,
}

/// Answers the call if it is one of these.
pub(super) async fn serve(broker: &Broker, call: &Call) -> Option<Result<Value, Status>> {
    match (call.method.as_str(), call.verb.as_str()) {
        ("POST", "publish" | "pull" | "acknowledge" | "modifyAckDeadline") => {
            Some(answer(broker, call).await)
        }
        _ => None,
    }
}

async fn answer(broker: &Broker, call: &Call) -> Result<Value, Status> {
    let body: Body = call.read()?;
    let subscription = call.name.clone();
    match call.verb.as_str() {
        "publish" => {
            let messages = body.messages.into_iter().map(read).collect::<Result<_, _>>()?;
            Ok(json!({"messageIds": broker.publish(&call.name, messages)?}))
        }
        "acknowledge" => {
            let request = pb::AcknowledgeRequest { subscription, ack_ids: body.ack_ids };
            acknowledge(broker, request).map(|()| json!({}))
        }
        "modifyAckDeadline" => {
            let request = pb::ModifyAckDeadlineRequest {
                subscription,
                ack_ids: body.ack_ids,
                ack_deadline_seconds: body.ack_deadline_seconds,
            };
            modify_deadline(broker, request).map(|()| json!({}))
        }
        _ => {
            #[expect(deprecated, reason = "clients still send the field")]
            let request = pb::PullRequest {
                subscription,
                return_immediately: body.return_immediately,
                max_messages: body.max_messages,
            };
            let pulled = pull(broker, &request).await?;
            let received: Vec<Value> = pulled.received_messages.iter().map(write).collect();
            Ok(json!({"receivedMessages": received}))
        }
    }
}

fn read(message: Published) -> Result<pb::PubsubMessage, Status> {
    let data = STANDARD
        .decode(&message.data)
        .map_err(|e| Status::invalid_argument(format!("messages.data: not base64: {e}")))?;
    Ok(pb::PubsubMessage {
        data: data.into(),
        attributes: message.attributes,
        ordering_key: message.ordering_key,
        ..Default::default()
    })
}

fn write(received: &crate::wire::RawReceivedMessage) -> Value {
    let message = pb::PubsubMessage::decode(received.message.clone()).unwrap_or_default();
    let mut value = json!({
        "ackId": received.ack_id,
        "message": {
            "data": STANDARD.encode(&message.data),
            "attributes": message.attributes,
            "messageId": message.message_id,
            "publishTime": message.publish_time.map(|at| at.to_string()),
            "orderingKey": message.ordering_key,
        },
    });
    if received.delivery_attempt != 0 {
        value["deliveryAttempt"] = received.delivery_attempt.into();
    }
    value
}
