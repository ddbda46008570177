//! What a handler may know about the operation it works on.

use time::OffsetDateTime;
use uuid::Uuid;

/// The claimed operation, without its claim.
#[derive(Debug, Clone)]
pub struct Operation {
    /// Operation id, also the provider metadata's `operation_id`.
    pub id: Uuid,
    /// Kind.
    pub kind: String,
    /// Tenant.
    pub organization: Uuid,
    /// Project.
    pub project: Option<Uuid>,
    /// The producer's name for the effect.
    pub operation_key: String,
    /// Generation claimed.
    pub generation: i64,
    /// Submission presented.
    pub submission: i32,
    /// Counted attempts, this one included.
    pub attempt: i32,
    /// Business request.
    pub correlation_id: Uuid,
    /// Event or operation that caused it.
    pub causation_id: Option<Uuid>,
    /// W3C trace context.
    pub traceparent: Option<String>,
    /// When it was accepted; time bits of its children's ids.
    pub accepted_at: OffsetDateTime,
    /// Earliest moment this submission may have left, by the database's clock.
    pub first_submitted_at: Option<OffsetDateTime>,
    /// When this claim was made, by the database's clock.
    pub claimed_at: OffsetDateTime,
}

/// What an earlier holder of the same submission saw.
#[derive(Debug, Clone)]
pub struct Evidence {
    /// Failure class, or `succeeded` for a fenced holder's success.
    pub class: String,
    /// Stable code.
    pub code: String,
    /// The holder was stale when it brought this.
    pub fenced: bool,
    /// Provider's facts, or the output.
    pub facts: Option<serde_json::Value>,
}
