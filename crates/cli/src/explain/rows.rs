//! Rows of the story, as the database tells them.

use serde::Serialize;
use serde_json::Value;
use time::OffsetDateTime;
use uuid::Uuid;

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Open {
    pub(crate) id: Uuid,
    pub(crate) kind: String,
    pub(crate) organization: Uuid,
    pub(crate) operation_key: String,
    pub(crate) mode: String,
    pub(crate) state: String,
    pub(crate) waiting_for: Option<String>,
    pub(crate) priority: i16,
    #[serde(with = "time::serde::rfc3339")]
    pub(crate) due_at: OffsetDateTime,
    pub(crate) due_in_seconds: f64,
    pub(crate) serial_key: Option<String>,
    pub(crate) serial: Option<String>,
    pub(crate) desired_generation: i64,
    pub(crate) claimed_generation: Option<i64>,
    pub(crate) submission: i32,
    pub(crate) may_have_left: bool,
    pub(crate) repeatable: bool,
    pub(crate) attempt: i32,
    pub(crate) lookups: i32,
    pub(crate) resolving: bool,
    pub(crate) absent_in_seconds: Option<f64>,
    #[serde(with = "time::serde::rfc3339::option")]
    pub(crate) cancel_requested_at: Option<OffsetDateTime>,
    #[serde(with = "time::serde::rfc3339::option")]
    pub(crate) expires_at: Option<OffsetDateTime>,
    pub(crate) failure_class: Option<String>,
    pub(crate) failure_code: Option<String>,
    pub(crate) failure_detail: Option<String>,
    #[serde(with = "time::serde::rfc3339::option")]
    pub(crate) failed_at: Option<OffsetDateTime>,
    pub(crate) correlation_id: Uuid,
    pub(crate) causation_id: Option<Uuid>,
    #[serde(with = "time::serde::rfc3339")]
    pub(crate) accepted_at: OffsetDateTime,
    pub(crate) lease_owner: Option<String>,
    pub(crate) lease_seconds: Option<f64>,
    pub(crate) workload: Option<String>,
    pub(crate) provider_account: Option<String>,
    pub(crate) irreversible: bool,
    pub(crate) inside_window: bool,
    pub(crate) max_input_version: Option<i32>,
    pub(crate) input_version: i32,
    pub(crate) holder: Option<Uuid>,
    pub(crate) lane_due: Option<bool>,
    pub(crate) budget_paused_seconds: Option<f64>,
    pub(crate) current_rate: Option<f64>,
    pub(crate) full_rate: Option<f64>,
    pub(crate) pauses: Option<Vec<String>>,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Ended {
    pub(crate) id: Uuid,
    pub(crate) generation: i64,
    pub(crate) kind: String,
    pub(crate) organization: Uuid,
    pub(crate) operation_key: String,
    pub(crate) outcome: String,
    pub(crate) code: Option<String>,
    pub(crate) detail: Option<String>,
    pub(crate) output: Option<Value>,
    pub(crate) submission: i32,
    pub(crate) attempt: i32,
    pub(crate) correlation_id: Uuid,
    pub(crate) causation_id: Option<Uuid>,
    pub(crate) successor: Option<Uuid>,
    #[serde(with = "time::serde::rfc3339")]
    pub(crate) accepted_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339")]
    pub(crate) finished_at: OffsetDateTime,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Attempt {
    #[serde(with = "time::serde::rfc3339")]
    pub(crate) at: OffsetDateTime,
    pub(crate) generation: i64,
    pub(crate) submission: i32,
    pub(crate) attempt: i32,
    pub(crate) fenced: bool,
    pub(crate) class: String,
    pub(crate) code: String,
    pub(crate) detail: Option<String>,
    pub(crate) evidence: Option<Value>,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Decided {
    #[serde(with = "time::serde::rfc3339")]
    pub(crate) at: OffsetDateTime,
    pub(crate) actor: String,
    pub(crate) action: String,
    pub(crate) reason: String,
    pub(crate) detail: Option<Value>,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Requested {
    pub(crate) kind: String,
    pub(crate) organization: Uuid,
    pub(crate) operation_key: String,
    pub(crate) input_version: i32,
    #[serde(with = "time::serde::rfc3339")]
    pub(crate) requested_at: OffsetDateTime,
    pub(crate) correlation_id: Uuid,
    pub(crate) causation_id: Option<Uuid>,
    pub(crate) max_input_version: Option<i32>,
}

/// Time of day with milliseconds, after the date where lines need one.
pub(crate) fn clock(at: OffsetDateTime) -> String {
    let (hour, minute, second, milli) = at.to_hms_milli();
    format!("{} {hour:02}:{minute:02}:{second:02}.{milli:03}Z", at.date())
}
