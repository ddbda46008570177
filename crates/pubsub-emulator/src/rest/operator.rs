//! The emulator's own pages: faults, log, statistics.

use super::error;
use crate::broker::Broker;
use crate::faults::FaultPlan;
use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::convert::Infallible;
use std::sync::Arc;
use tonic::Status;

/// Lines read from the log under one lock.
const LOG_CHUNK: usize = 1000;

/// `GET /faults`: the plan as it stands and how often each fault fired since start.
pub(crate) async fn faults(State(broker): State<Arc<Broker>>) -> Response {
    let (plan, fired) = broker.faults.snapshot();
    axum::Json(json!({"plan": plan, "fired": fired})).into_response()
}

/// `PUT /faults`: replaces the plan.
pub(crate) async fn replace_faults(State(broker): State<Arc<Broker>>, body: Bytes) -> Response {
    let plan = match serde_json::from_slice(&body) {
        Ok(plan) => plan,
        Err(e) => return error(&Status::invalid_argument(format!("faults: {e}"))),
    };
    apply(broker, plan).await
}

/// `POST /faults`: adds rules to the plan and replaces the single settings it names.
pub(crate) async fn merge_faults(State(broker): State<Arc<Broker>>, body: Bytes) -> Response {
    let merged = serde_json::from_slice(&body).map_err(|e| e.to_string()).and_then(|added: Map<_, _>| {
        let current = serde_json::to_value(broker.faults.snapshot().0).map_err(|e| e.to_string())?;
        let Value::Object(mut plan) = current else { return Err("plan unreadable".to_owned()) };
        for (field, value) in added {
            match (plan.get_mut(&field), value) {
                (Some(Value::Array(rules)), Value::Array(new)) => rules.extend(new),
                (_, value) => {
                    plan.insert(field, value);
                }
            }
        }
        serde_json::from_value(Value::Object(plan)).map_err(|e| e.to_string())
    });
    match merged {
        Ok(plan) => apply(broker, plan).await,
        Err(e) => error(&Status::invalid_argument(format!("faults: {e}"))),
    }
}

/// `DELETE /faults`: a well-behaved service again. Counters stay.
pub(crate) async fn clear_faults(State(broker): State<Arc<Broker>>) -> Response {
    apply(broker, FaultPlan::default()).await
}

async fn apply(broker: Arc<Broker>, plan: FaultPlan) -> Response {
    match broker.set_faults(plan) {
        Ok(()) => faults(State(broker)).await,
        Err(status) => error(&status),
    }
}

/// Query of `GET /log`.
#[derive(Deserialize)]
pub(crate) struct LogQuery {
    /// First sequence number wanted.
    #[serde(default)]
    from: u64,
    /// Only this topic (full name).
    topic: Option<String>,
}

/// `GET /log`: every accepted message as NDJSON, oldest first.
pub(crate) async fn log(State(broker): State<Arc<Broker>>, Query(query): Query<LogQuery>) -> Response {
    let lines = futures_util::stream::unfold(query.from, move |from| {
        let (broker, topic) = (Arc::clone(&broker), query.topic.clone());
        async move {
            let (text, next) = broker.log.read(from, LOG_CHUNK, topic.as_deref())?;
            Some((Ok::<_, Infallible>(text), next))
        }
    });
    ([(http::header::CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(lines)).into_response()
}

/// `DELETE /log`: forgets the lines; numbering goes on.
pub(crate) async fn clear_log(State(broker): State<Arc<Broker>>) -> Response {
    broker.log.clear();
    axum::Json(json!({})).into_response()
}

/// `GET /stats`: counters since start, sizes of subscriptions, faults fired.
pub(crate) async fn stats(State(broker): State<Arc<Broker>>) -> Response {
    let subscriptions: Map<String, Value> = broker
        .all_subscriptions()
        .iter()
        .map(|subscription| {
            let (unacked, outstanding, held) = subscription.sizes();
            let sizes = json!({"unacked": unacked, "outstanding": outstanding, "receivers": held.len(), "held": held});
            (subscription.name.to_string(), sizes)
        })
        .collect();
    let (kept, dropped) = broker.log.size();
    let mut stats = broker.stats.json();
    stats.insert("subscriptions".into(), subscriptions.into());
    stats.insert("log_lines".into(), kept.into());
    stats.insert("log_lines_dropped".into(), dropped.into());
    stats.insert("faults_fired".into(), json!(broker.faults.snapshot().1));
    axum::Json(stats).into_response()
}
