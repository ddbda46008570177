//! `backline ops ls`.

use crate::Verdict;
use crate::output::{Output, span, table};
use clap::{Args, ValueEnum};
use serde::Serialize;
use sqlx::PgPool;
use uuid::Uuid;

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only this state.
    #[arg(long, value_enum)]
    state: Option<OpenState>,
    /// Only this kind, such as `stripe.transfer`.
    #[arg(long)]
    kind: Option<String>,
    /// Only this organization.
    #[arg(long)]
    organization: Option<Uuid>,
    /// Only those whose last failure was of this class.
    #[arg(long)]
    class: Option<String>,
    /// Rows at most.
    #[arg(long, default_value_t = 50)]
    limit: i64,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum OpenState {
    Waiting,
    Ready,
    Running,
    Unknown,
    Manual,
    Dead,
}

#[derive(Debug, Serialize)]
struct Row {
    id: Uuid,
    kind: String,
    organization: Uuid,
    state: String,
    waiting_for: Option<String>,
    failure_class: Option<String>,
    failure_code: Option<String>,
    attempt: i32,
    submission: i32,
    age_seconds: f64,
    due_in_seconds: f64,
    operation_key: String,
}

pub(super) async fn run(pool: &PgPool, args: ListArgs, output: &Output) -> anyhow::Result<Verdict> {
    let state = args.state.and_then(|state| Some(state.to_possible_value()?.get_name().to_owned()));
    let rows = sqlx::query_file_as!(
        Row,
        "sql/list_operations.sql",
        state,
        args.kind,
        args.organization,
        args.class,
        args.limit
    )
    .fetch_all(pool)
    .await?;
    output.answer(&rows, || {
        if rows.is_empty() {
            return "no unfinished operation matches".to_owned();
        }
        let lines = rows.iter().map(|row| {
            let state = match &row.waiting_for {
                Some(what) => format!("{} ({what})", row.state),
                None => row.state.clone(),
            };
            let due = match row.state.as_str() {
                "ready" | "unknown" if row.due_in_seconds > 0.0 => format!("in {}", span(row.due_in_seconds)),
                "ready" | "unknown" => "now".to_owned(),
                _ => "-".to_owned(),
            };
            let failure = match (&row.failure_class, &row.failure_code) {
                (Some(class), Some(code)) => format!("{class}: {code}"),
                _ => "-".to_owned(),
            };
            let tries = format!("{}/{}", row.attempt, row.submission);
            vec![
                row.id.to_string(),
                row.kind.clone(),
                state,
                failure,
                tries,
                due,
                span(row.age_seconds),
                row.operation_key.clone(),
            ]
        });
        table(&["id", "kind", "state", "last failure", "attempt/submission", "due", "age", "key"], lines)
    })?;
    Ok(Verdict::Good)
}
