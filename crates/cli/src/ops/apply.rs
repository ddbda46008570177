//! Carrying a decision out: one transaction that rechecks, changes, promotes and audits.

use super::DecisionArgs;
use super::decision::{Action, Judged};
use super::follow::{MadeReady, follow};
use crate::Verdict;
use crate::output::Output;
use backline_outbox::{AsTransient, run_tx};
use serde_json::json;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

#[derive(Debug, thiserror::Error)]
enum ApplyError {
    #[error("database: {0}")]
    Database(#[from] sqlx::Error),
    /// A rule or a changed state is in the way; nothing was written.
    #[error("{0}")]
    Refused(String),
}

impl AsTransient for ApplyError {
    fn is_transient(&self) -> bool {
        matches!(self, Self::Database(error) if error.is_transient())
    }
}

pub(super) async fn run(
    pool: &PgPool,
    args: DecisionArgs,
    action: Action,
    output: &Output,
) -> anyhow::Result<Verdict> {
    anyhow::ensure!(!args.reason.trim().is_empty(), "--reason is empty");
    anyhow::ensure!(!args.actor.trim().is_empty(), "--actor is empty");
    let judged = if args.dry_run {
        preview(pool, &args, &action).await?
    } else {
        decide(pool, &args, &action).await?
    };
    let (to, words) = action.effect(&judged);
    let answer = json!({
        "operation": args.id, "action": action.name(), "dry_run": args.dry_run, "actor": args.actor,
        "approved_by": args.approved_by, "from": judged.state, "to": to, "means": words, "kind": judged.kind,
    });
    output.answer(&answer, || {
        let mood = if args.dry_run { "would be" } else { "done" };
        format!("{} {} {mood}: {} -> {to}; {words}", action.name(), args.id, judged.state)
    })?;
    Ok(Verdict::Good)
}

async fn preview(pool: &PgPool, args: &DecisionArgs, action: &Action) -> Result<Judged, ApplyError> {
    let mut connection = pool.acquire().await?;
    let judged = lock(&mut connection, args.id).await?;
    check(args, action, &judged)?;
    Ok(judged)
}

async fn decide(pool: &PgPool, args: &DecisionArgs, action: &Action) -> Result<Judged, ApplyError> {
    let request = Uuid::now_v7().to_string();
    let mut before = None;
    run_tx!(pool, "operator", |tx| async {
        let mine =
            sqlx::query_file_scalar!("sql/own_audit.sql", args.id, request).fetch_one(&mut *tx).await?;
        if let (true, Some(judged)) = (mine, before.clone()) {
            return Ok::<Judged, ApplyError>(judged);
        }
        let judged = lock(tx, args.id).await?;
        before = Some(judged.clone());
        check(args, action, &judged)?;
        change(tx, args, action, &judged).await?;
        let detail = json!({
            "request": request, "approved_by": args.approved_by, "state": judged.state, "submission": judged.submission,
            "kind": judged.kind, "failure_class": judged.failure_class, "failure_code": judged.failure_code,
            "to": action.effect(&judged).0, "evidence": action.evidence(),
        });
        sqlx::query_file!(
            "sql/add_audit.sql",
            args.actor,
            action.name(),
            args.id,
            args.reason,
            detail.to_string()
        )
        .execute(&mut *tx)
        .await?;
        Ok(judged)
    })
}

async fn lock(tx: &mut PgConnection, id: Uuid) -> Result<Judged, ApplyError> {
    let found = sqlx::query_file_as!(Judged, "sql/lock_operation.sql", id).fetch_optional(&mut *tx).await?;
    if let Some(judged) = found {
        return Ok(judged);
    }
    let ended = sqlx::query_file!("sql/outcomes.sql", id).fetch_all(&mut *tx).await?;
    Err(ApplyError::Refused(match ended.last() {
        Some(last) => format!("operation {id} has ended: {} at {}", last.outcome, last.finished_at),
        None => format!(
            "operation {id} is not there: see `backline explain {id}` for a request that was not folded yet"
        ),
    }))
}

fn check(args: &DecisionArgs, action: &Action, judged: &Judged) -> Result<(), ApplyError> {
    match action.refusal(args.id, judged, &args.actor, args.approved_by.as_deref()) {
        Some(why) => Err(ApplyError::Refused(why)),
        None => Ok(()),
    }
}

/// Each statement rechecks the whole condition; no row means that it no longer holds.
async fn change(
    tx: &mut PgConnection,
    args: &DecisionArgs,
    action: &Action,
    judged: &Judged,
) -> Result<(), ApplyError> {
    let changed =
        || ApplyError::Refused(format!("operation {} changed meanwhile; look at it again", args.id));
    let id = args.id;
    let (released, ready) = match action {
        Action::Cancel => {
            sqlx::query_file!("sql/request_cancel.sql", id, args.reason).execute(&mut *tx).await?;
            (None, None)
        }
        Action::Retry => {
            let row = sqlx::query_file!("sql/retry_dead.sql", id)
                .fetch_optional(&mut *tx)
                .await?
                .ok_or_else(changed)?;
            if backline_crash_point::seeded_bug(15) {
                sqlx::query_file!("sql/seeded/replay_under_new_id.sql", id).execute(&mut *tx).await?;
            }
            let ready = MadeReady {
                kind: row.kind,
                organization: row.organization,
                priority: row.priority,
                due_at: row.due_at,
            };
            (None, Some(ready))
        }
        Action::Discard => {
            let row =
                sqlx::query_file!("sql/discard_dead.sql", id, args.reason).fetch_optional(&mut *tx).await?;
            let row = row.ok_or_else(changed)?;
            (row.serial_key.map(|key| (row.organization, key)), None)
        }
        Action::Applied { evidence } => {
            let evidence = evidence.to_string();
            let row =
                sqlx::query_file!("sql/resolve_applied.sql", id, judged.submission, args.reason, evidence)
                    .fetch_optional(&mut *tx)
                    .await?;
            let row = row.ok_or_else(changed)?;
            (row.serial_key.map(|key| (row.organization, key)), None)
        }
        Action::NotApplied { .. } => {
            let row = sqlx::query_file!("sql/resolve_not_applied.sql", id, judged.submission)
                .fetch_optional(&mut *tx)
                .await?
                .ok_or_else(changed)?;
            let ready = MadeReady {
                kind: row.kind,
                organization: row.organization,
                priority: row.priority,
                due_at: row.due_at,
            };
            (row.released_key.map(|key| (row.organization, key)), Some(ready))
        }
    };
    follow(tx, released, ready).await?;
    Ok(())
}
