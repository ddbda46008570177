//! Claims: the right to work on operations for a while, held as values.

mod fold;
mod identity;
mod lanes;
mod lease;
mod round;
mod serial;
mod trail;

pub(crate) use fold::{Request, accept};
pub(crate) use identity::{operation_id, stored_key};
pub(crate) use lanes::{MadeReady, lower};
pub(crate) use lease::{LeaseKeeper, LeaseShare};
pub(crate) use round::Claimer;
pub(crate) use serial::SerialKeys;

use crate::author::Operation;
use time::OffsetDateTime;
use uuid::Uuid;

/// Identity of a claim: all of it is compared by every write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fence {
    /// From a sequence.
    pub(crate) token: i64,
    /// Made by the claimer: a rewound sequence cannot revive a zombie.
    pub(crate) nonce: i64,
    /// Lease row that must still exist.
    pub(crate) lease: i64,
}

/// One claimed operation, held by one attempt.
#[derive(Debug)]
pub(crate) struct Claim {
    pub(crate) operation: Operation,
    pub(crate) fence: Fence,
    pub(crate) input: String,
    pub(crate) input_version: i32,
    /// Set when its ready lane has a cap: the room it took must be given back.
    pub(crate) capped: Option<i16>,
    pub(crate) lookups: i32,
    /// Look up, do not submit.
    pub(crate) resolving: bool,
    /// An earlier attempt of this submission may have reached the provider.
    pub(crate) may_have_left: bool,
    pub(crate) cancel_requested: bool,
    pub(crate) expired: bool,
    /// Until a lookup's "not there" may be believed; negative or none = now.
    pub(crate) absent_in_ms: Option<i64>,
    pub(crate) lease: LeaseShare,
}

/// Row of both claim statements.
pub(crate) struct ClaimedRow {
    pub(crate) id: Uuid,
    pub(crate) kind: String,
    pub(crate) organization: Uuid,
    pub(crate) project: Option<Uuid>,
    pub(crate) operation_key: String,
    pub(crate) input: String,
    pub(crate) input_version: i32,
    pub(crate) priority: i16,
    pub(crate) token: i64,
    pub(crate) lease_id: i64,
    pub(crate) generation: i64,
    pub(crate) submission: i32,
    pub(crate) attempt: i32,
    pub(crate) lookups: i32,
    pub(crate) resolving: bool,
    pub(crate) may_have_left: bool,
    pub(crate) correlation_id: Uuid,
    pub(crate) causation_id: Option<Uuid>,
    pub(crate) traceparent: Option<String>,
    pub(crate) accepted_at: OffsetDateTime,
    pub(crate) cancel_requested: bool,
    pub(crate) expired: bool,
    pub(crate) absent_in_ms: Option<i64>,
    pub(crate) first_submitted_at: Option<OffsetDateTime>,
    pub(crate) claimed_at: OffsetDateTime,
}

impl Claim {
    pub(crate) fn new(row: ClaimedRow, nonce: i64, lease: LeaseShare, capped: bool) -> Self {
        Self {
            operation: Operation {
                id: row.id,
                kind: row.kind,
                organization: row.organization,
                project: row.project,
                operation_key: row.operation_key,
                generation: row.generation,
                submission: row.submission,
                attempt: row.attempt,
                correlation_id: row.correlation_id,
                causation_id: row.causation_id,
                traceparent: row.traceparent,
                accepted_at: row.accepted_at,
                first_submitted_at: row.first_submitted_at,
                claimed_at: row.claimed_at,
            },
            fence: Fence { token: row.token, nonce, lease: row.lease_id },
            capped: capped.then_some(row.priority),
            input: row.input,
            input_version: row.input_version,
            lookups: row.lookups,
            resolving: row.resolving,
            may_have_left: row.may_have_left,
            cancel_requested: row.cancel_requested,
            expired: row.expired,
            absent_in_ms: row.absent_in_ms,
            lease,
        }
    }
}
