//! The envelope itself.

use crate::Payload;
use time::OffsetDateTime;
use uuid::Uuid;

/// An event and its context, as stored in the outbox and carried by the broker (obligation D5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Identity of the event; the same on every delivery, re-offer and replay.
    pub id: Uuid,
    /// Past-tense name of the fact, for example `PaymentAuthorized`.
    pub event_type: String,
    /// Version of the payload's schema, from 1.
    pub schema_version: i32,
    /// Tenant; absent only on the platform events of obligation I25.
    pub organization: Option<Uuid>,
    /// Project inside the tenant; absent where the type's scope says so.
    pub project: Option<Uuid>,
    /// Kind of the aggregate that did it, for example `payment`.
    pub aggregate_type: String,
    /// Which aggregate did it.
    pub aggregate_id: String,
    /// The aggregate's version after the fact; decides order where given.
    pub aggregate_version: Option<i64>,
    /// Ties together everything that followed from one request.
    pub correlation_id: Uuid,
    /// The event or operation that led to this one.
    pub causation_id: Option<Uuid>,
    /// W3C trace context of the emitting request.
    pub traceparent: Option<String>,
    /// Vendor part of the trace context; left out on the wire when longer than an attribute may be.
    pub tracestate: Option<String>,
    /// When the fact happened, by the database's clock.
    pub occurred_at: OffsetDateTime,
    /// The facts, as JSON text.
    pub payload: Payload,
}
