//! Appending events in the caller's transaction.

use crate::error::AppendError;
use backline_envelope::{Envelope, Event, InvalidJson, Payload};
use sqlx::PgConnection;
use uuid::Uuid;

/// An event that is not stored yet.
#[derive(Clone, Debug)]
pub struct NewEvent {
    /// Given for deterministic children ([`backline_envelope::child_event_id`]); otherwise the database mints it.
    pub id: Option<Uuid>,
    /// Past-tense name of the fact.
    pub event_type: String,
    /// Version of the payload's schema, from 1.
    pub schema_version: i32,
    /// Tenant.
    pub organization: Option<Uuid>,
    /// Project inside the tenant.
    pub project: Option<Uuid>,
    /// Kind of the aggregate.
    pub aggregate_type: String,
    /// Which aggregate.
    pub aggregate_id: String,
    /// The aggregate's version after the fact.
    pub aggregate_version: Option<i64>,
    /// Business request; the event's own id when absent.
    pub correlation_id: Option<Uuid>,
    /// Event or operation that led here.
    pub causation_id: Option<Uuid>,
    /// W3C trace context.
    pub traceparent: Option<String>,
    /// Vendor part of the trace context.
    pub tracestate: Option<String>,
    /// Broker topic id; the default topic when absent.
    pub topic: Option<String>,
    /// The facts.
    pub payload: Payload,
}

impl NewEvent {
    /// A typed event about `aggregate_type` / `aggregate_id`, in a project.
    ///
    /// # Errors
    /// A payload that JSON cannot carry.
    pub fn new<E: Event>(
        event: &E,
        organization: Uuid,
        project: Uuid,
        aggregate_type: impl Into<String>,
        aggregate_id: impl Into<String>,
    ) -> Result<Self, InvalidJson> {
        Ok(Self {
            id: None,
            event_type: E::TYPE.to_owned(),
            schema_version: E::VERSION,
            organization: Some(organization),
            project: Some(project),
            aggregate_type: aggregate_type.into(),
            aggregate_id: aggregate_id.into(),
            aggregate_version: None,
            correlation_id: None,
            causation_id: None,
            traceparent: None,
            tracestate: None,
            topic: None,
            payload: Payload::encode(event)?,
        })
    }

    /// The aggregate's version after the fact.
    #[must_use]
    pub fn at_version(mut self, version: i64) -> Self {
        self.aggregate_version = Some(version);
        self
    }

    /// Continues the business request and trace of the event that led here.
    #[must_use]
    pub fn caused_by(mut self, parent: &Envelope) -> Self {
        self.correlation_id = Some(parent.correlation_id);
        self.causation_id = Some(parent.id);
        self.traceparent.clone_from(&parent.traceparent);
        self.tracestate.clone_from(&parent.tracestate);
        self
    }
}

/// Appends one event in the caller's transaction and returns its id.
///
/// # Errors
/// [`AppendError::Refused`] for a broken contract, [`AppendError::Database`] otherwise; roll back in both cases.
pub async fn append(tx: &mut PgConnection, event: &NewEvent) -> Result<Uuid, AppendError> {
    let id = sqlx::query_file_scalar!(
        "sql/append.sql",
        event.event_type,
        event.organization,
        event.project,
        event.aggregate_type,
        event.aggregate_id,
        event.payload.as_str(),
        event.schema_version,
        event.aggregate_version,
        event.correlation_id,
        event.causation_id,
        event.traceparent,
        event.tracestate,
        event.id,
        event.topic,
    )
    .fetch_one(tx)
    .await?;
    Ok(id)
}

/// Appends many events in one statement and returns their ids in order.
///
/// # Errors
/// As [`append`]; one refused event refuses all.
pub async fn append_all(tx: &mut PgConnection, events: &[NewEvent]) -> Result<Vec<Uuid>, AppendError> {
    if events.is_empty() {
        return Ok(Vec::new());
    }
    let query = sqlx::query_file_scalar!(
        "sql/append_all.sql",
        column(events, |e| e.event_type.as_str()) as _,
        column(events, |e| e.organization) as _,
        column(events, |e| e.project) as _,
        column(events, |e| e.aggregate_type.as_str()) as _,
        column(events, |e| e.aggregate_id.as_str()) as _,
        column(events, |e| e.payload.as_str()) as _,
        column(events, |e| e.schema_version) as _,
        optional(events, |e| e.aggregate_version) as _,
        optional(events, |e| e.correlation_id) as _,
        optional(events, |e| e.causation_id) as _,
        optional(events, |e| e.traceparent.as_deref()) as _,
        optional(events, |e| e.tracestate.as_deref()) as _,
        optional(events, |e| e.id) as _,
        optional(events, |e| e.topic.as_deref()) as _,
    );
    Ok(query.fetch_one(tx).await?)
}

fn column<'a, T>(events: &'a [NewEvent], of: impl Fn(&'a NewEvent) -> T) -> Vec<T> {
    events.iter().map(of).collect()
}

/// A column that is not sent when no event has it.
fn optional<'a, T>(events: &'a [NewEvent], of: impl Fn(&'a NewEvent) -> Option<T>) -> Option<Vec<Option<T>>> {
    let column = column(events, of);
    column.iter().any(Option::is_some).then_some(column)
}
