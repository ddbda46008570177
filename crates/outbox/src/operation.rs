//! Asking for operations in the caller's transaction.

use crate::error::AppendError;
use backline_envelope::Payload;
use sqlx::PgConnection;
use sqlx::postgres::types::PgInterval;
use std::time::Duration;
use time::OffsetDateTime;
use uuid::Uuid;

/// An operation that is asked for: one effect owed.
#[derive(Clone, Debug)]
pub struct NewOperation {
    /// Operation kind, for example `stripe.transfer`.
    pub kind: String,
    /// Tenant.
    pub organization: Uuid,
    /// Project inside the tenant.
    pub project: Option<Uuid>,
    /// The producer's name for the effect inside (organization, kind): asking twice is asking once.
    pub operation_key: String,
    /// Frozen inputs (command, event) or ids only (reconcile).
    pub input: Payload,
    /// Version of the input's shape, from 1.
    pub input_version: i32,
    /// Not before this long after acceptance.
    pub delay: Option<Duration>,
    /// Not started after this.
    pub expires_at: Option<OffsetDateTime>,
    /// Operations of one (organization, serial key) never overlap.
    pub serial_key: Option<String>,
    /// Lower is claimed first, 0 to 9.
    pub priority: i16,
    /// Business request; the operation's own id when absent.
    pub correlation_id: Option<Uuid>,
    /// Event or operation that led here.
    pub causation_id: Option<Uuid>,
    /// W3C trace context.
    pub traceparent: Option<String>,
}

impl NewOperation {
    /// An operation due at once, with input version 1 and the highest priority.
    #[must_use]
    pub fn new(
        kind: impl Into<String>,
        organization: Uuid,
        operation_key: impl Into<String>,
        input: Payload,
    ) -> Self {
        Self {
            kind: kind.into(),
            organization,
            project: None,
            operation_key: operation_key.into(),
            input,
            input_version: 1,
            delay: None,
            expires_at: None,
            serial_key: None,
            priority: 0,
            correlation_id: None,
            causation_id: None,
            traceparent: None,
        }
    }
}

/// Asks for an operation in the caller's transaction and returns its deterministic id.
///
/// # Errors
/// [`AppendError::Refused`] for a broken contract, [`AppendError::Database`] otherwise; roll back in both cases.
pub async fn enqueue(tx: &mut PgConnection, operation: &NewOperation) -> Result<Uuid, AppendError> {
    let delay = operation.delay.map(|delay| {
        // Through microseconds: PostgreSQL keeps no nanoseconds and the conversion would refuse them.
        let micros = i64::try_from(delay.as_micros()).unwrap_or(i64::MAX);
        PgInterval { months: 0, days: 0, microseconds: micros }
    });
    let id = sqlx::query_file_scalar!(
        "sql/enqueue.sql",
        operation.kind,
        operation.organization,
        operation.operation_key,
        operation.input.as_str(),
        operation.project,
        operation.input_version,
        delay as Option<PgInterval>,
        operation.expires_at,
        operation.serial_key,
        operation.priority,
        operation.correlation_id,
        operation.causation_id,
        operation.traceparent,
    )
    .fetch_one(tx)
    .await?;
    Ok(id)
}
