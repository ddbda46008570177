//! Reading what waits.

use super::DrainError;
use crate::run_tx;
use backline_envelope::{Envelope, InvalidJson, Payload};
use sqlx::PgPool;
use time::OffsetDateTime;
use uuid::Uuid;

/// One outbox entry, as read.
#[derive(Debug)]
pub struct Entry {
    /// Its number inside the lane.
    pub seq: i64,
    /// Broker topic id.
    pub topic: String,
    /// The event.
    pub envelope: Envelope,
}

struct Row {
    seq: i64,
    id: Uuid,
    event_type: String,
    schema_version: i32,
    organization: Option<Uuid>,
    project: Option<Uuid>,
    topic: String,
    aggregate_type: String,
    aggregate_id: String,
    aggregate_version: Option<i64>,
    correlation_id: Uuid,
    causation_id: Option<Uuid>,
    traceparent: Option<String>,
    tracestate: Option<String>,
    occurred_at: OffsetDateTime,
    payload: String,
}

/// Reads up to `rows` entries of a lane behind `after`, and no more than about `bytes` of stored payload.
///
/// Entries come in insertion order, except that those of one aggregate that carry versions are put in version order.
///
/// # Errors
/// The database's error.
pub async fn read_batch(
    pool: &PgPool,
    lane: i16,
    after: i64,
    rows: usize,
    bytes: usize,
    paused_topics: &[String],
) -> Result<Vec<Entry>, DrainError> {
    let rows = i64::try_from(rows).unwrap_or(i64::MAX);
    let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
    // In a transaction, so that a pooler keeps parsing and running the statement on one server connection.
    let found = run_tx!(pool, "relay.read", |tx| async {
        let query = sqlx::query_file_as!(Row, "sql/read_batch.sql", lane, after, rows, bytes, paused_topics);
        Ok::<_, DrainError>(query.fetch_all(tx).await?)
    })?;
    let mut entries = found
        .into_iter()
        .map(|row| row.into_entry().map_err(|error| sqlx::Error::Decode(error.into())))
        .collect::<Result<Vec<_>, _>>()?;
    order_by_version(&mut entries);
    Ok(entries)
}

impl Row {
    fn into_entry(self) -> Result<Entry, InvalidJson> {
        Ok(Entry {
            seq: self.seq,
            topic: self.topic,
            envelope: Envelope {
                id: self.id,
                event_type: self.event_type,
                schema_version: self.schema_version,
                organization: self.organization,
                project: self.project,
                aggregate_type: self.aggregate_type,
                aggregate_id: self.aggregate_id,
                aggregate_version: self.aggregate_version,
                correlation_id: self.correlation_id,
                causation_id: self.causation_id,
                traceparent: self.traceparent,
                tracestate: self.tracestate,
                occurred_at: self.occurred_at,
                payload: Payload::from_string(self.payload)?,
            },
        })
    }
}

/// Puts versioned entries of one aggregate into version order, on the places they hold already.
fn order_by_version(entries: &mut [Entry]) {
    type Aggregate = (Option<Uuid>, String, String);
    let mut places: std::collections::HashMap<Aggregate, Vec<usize>> = std::collections::HashMap::new();
    for (at, entry) in entries.iter().enumerate() {
        let envelope = &entry.envelope;
        if envelope.aggregate_version.is_some() {
            let key = (envelope.organization, envelope.aggregate_type.clone(), envelope.aggregate_id.clone());
            places.entry(key).or_default().push(at);
        }
    }
    for places in places.into_values() {
        // Selection by swaps: almost always in order already, and batches are small.
        for first in 0..places.len() {
            let lowest = (first..places.len())
                .min_by_key(|at| (entries[places[*at]].envelope.aggregate_version, *at))
                .unwrap_or(first);
            entries.swap(places[first], places[lowest]);
        }
    }
}
