//! REST calls on topics, subscriptions and snapshots.

use super::json::mask;
use super::shapes::{PushConfig, Snapshot, Subscription, Topic};
use super::{Call, json};
use crate::broker::{Broker, Page, SeekTo};
use crate::wire::unix_nanos;
use googleapis_tonic_google_pubsub_v1::google::pubsub::v1 as pb;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;
use tonic::Status;

type Answer = Result<Value, Status>;

fn value<T: Serialize>(of: T) -> Answer {
    serde_json::to_value(of).map_err(|e| Status::internal(e.to_string()))
}

fn empty((): ()) -> Answer {
    Ok(Value::Object(Map::new()))
}

fn listed<T, J: From<T> + Serialize>(field: &str, page: Page<T>) -> Answer {
    let items: Vec<J> = page.items.into_iter().map(J::from).collect();
    let mut answer = Map::new();
    answer.insert(field.to_owned(), value(items)?);
    if !page.next.is_empty() {
        answer.insert("nextPageToken".to_owned(), page.next.into());
    }
    Ok(Value::Object(answer))
}

/// Routes a call by method, collection and verb.
pub(super) fn serve(broker: &Arc<Broker>, call: &Call) -> Answer {
    let parts: Vec<&str> = call.name.split('/').collect();
    let verb = (call.method.as_str(), call.verb.as_str());
    match parts.as_slice() {
        ["projects", _, "topics", _] if call.verb.is_empty() => topic(broker, call),
        ["projects", _, "subscriptions", _] => match verb {
            ("POST", "seek") => seek(broker, call),
            ("POST", "detach") => broker.detach_subscription(&call.name).and_then(empty),
            ("POST", "modifyPushConfig") => modify_push(broker, call),
            (_, "") => subscription(broker, call),
            _ => unknown(call),
        },
        ["projects", _, "snapshots", _] if call.verb.is_empty() => snapshot(broker, call),
        ["projects", project, collection] if verb == ("GET", "") => {
            let project = format!("projects/{project}");
            let (size, token) = call.page();
            match *collection {
                "topics" => listed::<_, Topic>("topics", broker.list_topics(&project, size, token)),
                "subscriptions" => listed::<_, Subscription>(
                    "subscriptions",
                    broker.list_subscriptions(&project, size, token),
                ),
                "snapshots" => {
                    listed::<_, Snapshot>("snapshots", broker.list_snapshots(&project, size, token))
                }
                _ => unknown(call),
            }
        }
        ["projects", project, "topics", topic, collection] if verb == ("GET", "") => {
            let topic = format!("projects/{project}/topics/{topic}");
            let (size, token) = call.page();
            match *collection {
                "subscriptions" => {
                    listed::<_, String>("subscriptions", broker.topic_subscriptions(&topic, size, token)?)
                }
                "snapshots" => listed::<_, String>("snapshots", broker.topic_snapshots(&topic, size, token)?),
                _ => unknown(call),
            }
        }
        _ => unknown(call),
    }
}

fn unknown(call: &Call) -> Answer {
    let Call { method, name, verb, .. } = call;
    Err(Status::unimplemented(format!("{method} {name} {verb}: not part of the emulator")))
}

/// Body of a PATCH: the resource under its own name, and the mask.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Patch {
    topic: Option<Topic>,
    subscription: Option<Subscription>,
    snapshot: Option<Snapshot>,
    update_mask: String,
}

fn absent(field: &str) -> Status {
    Status::invalid_argument(format!("{field}: missing"))
}

fn topic(broker: &Broker, call: &Call) -> Answer {
    match call.method.as_str() {
        "GET" => value(Topic::from(broker.topic(&call.name)?.config())),
        "PUT" => {
            let topic = pb::Topic { name: call.name.clone(), ..call.read::<Topic>()?.into() };
            value(Topic::from(broker.create_topic(topic)?))
        }
        "PATCH" => {
            let patch: Patch = call.read()?;
            let from = patch.topic.ok_or_else(|| absent("topic"))?;
            let from = pb::Topic { name: call.name.clone(), ..from.into() };
            value(Topic::from(broker.update_topic(from, &mask(&patch.update_mask))?))
        }
        "DELETE" => broker.delete_topic(&call.name).and_then(empty),
        _ => unknown(call),
    }
}

fn subscription(broker: &Arc<Broker>, call: &Call) -> Answer {
    match call.method.as_str() {
        "GET" => value(Subscription::from(broker.subscription(&call.name)?.config())),
        "PUT" => {
            let from = call.read::<Subscription>()?;
            let from = pb::Subscription { name: call.name.clone(), ..from.into() };
            value(Subscription::from(broker.create_subscription(from)?))
        }
        "PATCH" => {
            let patch: Patch = call.read()?;
            let from = patch.subscription.ok_or_else(|| absent("subscription"))?;
            let from = pb::Subscription { name: call.name.clone(), ..from.into() };
            value(Subscription::from(broker.update_subscription(from, &mask(&patch.update_mask))?))
        }
        "DELETE" => broker.delete_subscription(&call.name).and_then(empty),
        _ => unknown(call),
    }
}

fn snapshot(broker: &Broker, call: &Call) -> Answer {
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Create {
        subscription: String,
        labels: std::collections::BTreeMap<String, String>,
    }
    match call.method.as_str() {
        "GET" => value(Snapshot::from(broker.get_snapshot(&call.name)?)),
        "PUT" => {
            let create: Create = call.read()?;
            let request = pb::CreateSnapshotRequest {
                name: call.name.clone(),
                subscription: create.subscription,
                labels: create.labels,
                ..Default::default()
            };
            value(Snapshot::from(broker.create_snapshot(request)?))
        }
        "PATCH" => {
            let patch: Patch = call.read()?;
            let from = patch.snapshot.ok_or_else(|| absent("snapshot"))?;
            let from = pb::Snapshot { name: call.name.clone(), ..from.into() };
            value(Snapshot::from(broker.update_snapshot(from, &mask(&patch.update_mask))?))
        }
        "DELETE" => broker.delete_snapshot(&call.name).and_then(empty),
        _ => unknown(call),
    }
}

fn seek(broker: &Broker, call: &Call) -> Answer {
    #[derive(Deserialize)]
    struct Seek {
        #[serde(default, with = "json::timestamp")]
        time: Option<prost_types::Timestamp>,
        #[serde(default)]
        snapshot: String,
    }
    let seek: Seek = call.read()?;
    let to = match seek.time {
        Some(time) => SeekTo::Time(unix_nanos(&time)),
        None if !seek.snapshot.is_empty() => SeekTo::Snapshot(seek.snapshot),
        None => return Err(absent("time or snapshot")),
    };
    broker.seek(&call.name, to).and_then(empty)
}

fn modify_push(broker: &Broker, call: &Call) -> Answer {
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase", default)]
    struct Modify {
        push_config: Option<PushConfig>,
    }
    let modify: Modify = call.read()?;
    broker.modify_push_config(&call.name, modify.push_config.map(Into::into)).and_then(empty)
}
