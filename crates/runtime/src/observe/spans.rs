//! The spans of a worker, by OpenTelemetry's conventions for messaging where they apply. Ids and codes, never inputs,
//! payloads or a provider's words.

use crate::author::Operation;
use crate::finish::How;
use crate::transition::State;
use backline_broker::Delivery;
use backline_telemetry::{KeyValue, Recording, SpanBuilder, SpanKind, child, child_or_root};
use std::time::SystemTime;

/// The acceptance of one delivery whose trace is sampled: reading it, its seal and its operations.
/// <https://opentelemetry.io/docs/specs/semconv/messaging/messaging-spans/>
pub(crate) fn process(source: &str, delivery: &Delivery, since: SystemTime) -> Option<Recording> {
    let told = |name: &str| delivery.attributes.get(name).cloned();
    let parent = delivery.attributes.get("ce-traceparent");
    let recording = child(parent.map(String::as_str), || {
        let mut attributes = vec![
            KeyValue::new("messaging.system", "gcp_pubsub"),
            KeyValue::new("messaging.operation.name", "process"),
            KeyValue::new("messaging.operation.type", "process"),
            KeyValue::new("messaging.destination.subscription.name", source.to_owned()),
            KeyValue::new("messaging.message.id", delivery.message_id.clone()),
        ];
        attributes.extend(told("ce-id").map(|id| KeyValue::new("backline.event.id", id)));
        attributes.extend(told("ce-type").map(|name| KeyValue::new("backline.event.type", name)));
        SpanBuilder::from_name(format!("process {source}"))
            .with_kind(SpanKind::Consumer)
            .with_start_time(since)
            .with_attributes(attributes)
    });
    if let (Some(recording), Some(attempt)) = (&recording, delivery.delivery_attempt) {
        recording.set("messaging.gcp_pubsub.message.delivery_attempt", i64::from(attempt));
    }
    recording
}

/// One attempt: reading, waiting for the provider's budget, calling it. Internal: what it works on is a row, and no
/// message.
pub(crate) fn attempt(operation: &Operation) -> Option<Recording> {
    child_or_root(operation.traceparent.as_deref(), || {
        SpanBuilder::from_name("attempt").with_kind(SpanKind::Internal).with_attributes([
            KeyValue::new("backline.kind", operation.kind.clone()),
            KeyValue::new("backline.operation.id", operation.id.to_string()),
            KeyValue::new("backline.operation.generation", operation.generation),
            KeyValue::new("backline.operation.submission", i64::from(operation.submission)),
            KeyValue::new("backline.operation.attempt", i64::from(operation.attempt)),
            KeyValue::new("backline.correlation.id", operation.correlation_id.to_string()),
        ])
    })
}

/// How the attempt ended: the state it asks for, and its failure.
pub(crate) fn ended(attempt: &Recording, how: &How) {
    match how {
        How::Finish { outcome, code, .. } => {
            attempt.set("backline.operation.state", outcome.as_str());
            if *outcome == State::Rejected {
                attempt.failed(code.clone().unwrap_or_else(|| outcome.as_str().to_owned()));
            }
        }
        How::Leave { state, failure, .. } => {
            attempt.set("backline.operation.state", state.as_str());
            if let Some(failure) = failure {
                attempt.set("backline.failure.class", failure.class.as_str());
                attempt.failed(failure.code.as_ref());
            }
        }
    }
}
