//! The span of one entry at the broker, by <https://opentelemetry.io/docs/specs/semconv/messaging/messaging-spans/>.

use backline_broker::PublishError;
use backline_outbox::drain::Entry;
use backline_telemetry::{KeyValue, SpanBuilder, SpanKind, child};
use std::time::SystemTime;

/// Records what became of an entry whose trace is sampled; nothing for one that was not sent.
///
/// The entry itself carries on its producer's context: it is the same bytes at every attempt to publish it, while each
/// attempt is a span of its own.
pub(crate) fn sent(entry: &Entry, lane: &str, since: SystemTime, answer: &Result<String, PublishError>) {
    if matches!(answer, Err(PublishError::NotSent)) {
        return;
    }
    let span = child(entry.envelope.traceparent.as_deref(), || {
        SpanBuilder::from_name(format!("send {}", entry.topic))
            .with_kind(SpanKind::Producer)
            .with_start_time(since)
            .with_attributes([
                KeyValue::new("messaging.system", "gcp_pubsub"),
                KeyValue::new("messaging.operation.name", "send"),
                KeyValue::new("messaging.operation.type", "send"),
                KeyValue::new("messaging.destination.name", entry.topic.clone()),
                KeyValue::new("messaging.gcp_pubsub.message.ordering_key", lane.to_owned()),
                KeyValue::new("backline.event.id", entry.envelope.id.to_string()),
                KeyValue::new("backline.event.type", entry.envelope.event_type.clone()),
            ])
    });
    let Some(span) = span else { return };
    match answer {
        Ok(message_id) => span.set("messaging.message.id", message_id.clone()),
        Err(PublishError::Outage { code, .. }) => span.failed(code.clone()),
        Err(_) => span.failed("refused"),
    }
}
