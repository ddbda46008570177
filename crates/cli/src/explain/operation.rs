//! The story of one operation.

use super::advice::{may_do, why};
use super::rows::{Attempt, Decided, Ended, Open, Requested, clock};
use serde::Serialize;
use serde_json::Value;
use sqlx::PgPool;
use time::OffsetDateTime;
use uuid::Uuid;

#[derive(Debug, Serialize)]
pub(crate) struct OperationStory {
    id: Uuid,
    #[serde(skip_serializing_if = "Option::is_none")]
    requested: Option<Requested>,
    #[serde(skip_serializing_if = "Option::is_none")]
    open: Option<Open>,
    why: Vec<String>,
    may_do: Vec<String>,
    attempts: Vec<Attempt>,
    outcomes: Vec<Ended>,
    decisions: Vec<Decided>,
}

impl OperationStory {
    /// `None`: no committed transaction visible here asked for it.
    pub(crate) async fn load(pool: &PgPool, id: Uuid) -> sqlx::Result<Option<Self>> {
        let open = sqlx::query_file_as!(Open, "sql/open_operation.sql", id).fetch_optional(pool).await?;
        let outcomes = sqlx::query_file_as!(Ended, "sql/outcomes.sql", id).fetch_all(pool).await?;
        let requested = sqlx::query_file_as!(Requested, "sql/requested.sql", id).fetch_optional(pool).await?;
        if open.is_none() && outcomes.is_empty() && requested.is_none() {
            return Ok(None);
        }
        let attempts = sqlx::query_file_as!(Attempt, "sql/evidence.sql", id).fetch_all(pool).await?;
        let decisions = sqlx::query_file_as!(Decided, "sql/decisions.sql", id).fetch_all(pool).await?;
        let (why, may_do) = match (&open, &requested) {
            (Some(open), _) => (why(open), may_do(open)),
            (None, Some(requested)) => (not_folded(requested), Vec::new()),
            (None, None) => (Vec::new(), vec!["nothing: it has ended".to_owned()]),
        };
        Ok(Some(Self { id, requested, open, why, may_do, attempts, outcomes, decisions }))
    }

    /// What caused it.
    pub(crate) fn causation(&self) -> Option<Uuid> {
        let open = self.open.as_ref().and_then(|open| open.causation_id);
        let ended = self.outcomes.last().and_then(|ended| ended.causation_id);
        open.or(ended).or_else(|| self.requested.as_ref().and_then(|requested| requested.causation_id))
    }

    /// One page for people.
    pub(crate) fn page(&self) -> String {
        let mut lines = vec![self.heading()];
        let mut timeline = self.timeline();
        timeline.sort_by_key(|(at, _)| *at);
        lines.extend(timeline.into_iter().map(|(at, text)| format!("  {}  {text}", clock(at))));
        if let Some(open) = &self.open {
            lines.push(format!("  now: {}", open.state));
        }
        lines.extend(self.why.iter().map(|reason| format!("  why: {reason}")));
        lines.extend(self.may_do.iter().map(|advice| format!("  you may: {advice}")));
        lines.join("\n")
    }

    fn heading(&self) -> String {
        let (kind, organization, key) = match (&self.open, self.outcomes.last(), &self.requested) {
            (Some(open), ..) => (&open.kind, open.organization, &open.operation_key),
            (None, Some(ended), _) => (&ended.kind, ended.organization, &ended.operation_key),
            (None, None, Some(requested)) => {
                (&requested.kind, requested.organization, &requested.operation_key)
            }
            (None, None, None) => return format!("operation {}", self.id),
        };
        format!("operation {}  {kind}\n  key {key}, organization {organization}", self.id)
    }

    fn timeline(&self) -> Vec<(OffsetDateTime, String)> {
        let mut lines = Vec::new();
        let accepted = self.open.as_ref().map(|open| open.accepted_at);
        if let Some(at) = accepted.or_else(|| self.outcomes.first().map(|ended| ended.accepted_at)) {
            lines.push((at, "accepted".to_owned()));
        }
        lines.extend(self.requested.iter().map(|request| (request.requested_at, "requested".to_owned())));
        lines.extend(self.attempts.iter().map(|attempt| (attempt.at, tried(attempt))));
        lines.extend(self.outcomes.iter().map(|ended| (ended.finished_at, ended_line(ended))));
        lines.extend(self.decisions.iter().map(|decided| {
            (decided.at, format!("{} decided: {} ({})", decided.actor, decided.action, decided.reason))
        }));
        lines
    }
}

fn tried(attempt: &Attempt) -> String {
    let what =
        if attempt.fenced { "stale holder's write refused, its answer kept" } else { "did not end it" };
    let mut line = format!(
        "attempt {}, submission {}: {}: {} ({what})",
        attempt.attempt, attempt.submission, attempt.class, attempt.code
    );
    if let Some(detail) = attempt.detail.as_deref().filter(|detail| !detail.is_empty()) {
        line.push_str(&format!(": {detail}"));
    }
    if let Some(evidence) = &attempt.evidence {
        line.push_str(&format!(" {}", known(evidence)));
    }
    line
}

/// Facts without those that the provider left out.
fn known(evidence: &Value) -> Value {
    match evidence {
        Value::Object(facts) => facts
            .iter()
            .filter(|(_, fact)| !fact.is_null())
            .map(|(name, fact)| (name.clone(), fact.clone()))
            .collect(),
        other => other.clone(),
    }
}

fn ended_line(ended: &Ended) -> String {
    let mut line = format!("{} (attempt {}, submission {}", ended.outcome, ended.attempt, ended.submission);
    if ended.generation > 1 {
        line.push_str(&format!(", generation {}", ended.generation));
    }
    line.push(')');
    for extra in [&ended.code, &ended.detail].into_iter().flatten() {
        line.push_str(&format!(" {extra}"));
    }
    if let Some(output) = &ended.output {
        line.push_str(&format!(" {output}"));
    }
    if let Some(successor) = ended.successor {
        line.push_str(&format!(", replaced by {successor}"));
    }
    line
}

fn not_folded(requested: &Requested) -> Vec<String> {
    vec![match requested.max_input_version {
        None => format!("no worker has declared {}: the request waits in intake", requested.kind),
        Some(version) if version < requested.input_version => {
            format!(
                "it needs input version {}, declared workers read up to {version}",
                requested.input_version
            )
        }
        Some(_) => "a worker folds it with its next claim".to_owned(),
    }]
}
