//! `backline pause` and `backline resume`.

use crate::Verdict;
use crate::output::Output;
use anyhow::Context;
use backline_outbox::run_tx;
use clap::{Args, ValueEnum};
use serde_json::json;
use sqlx::PgPool;
use uuid::Uuid;

#[derive(Debug, Args)]
pub(crate) struct PauseArgs {
    /// What.
    #[arg(value_enum)]
    scope: Scope,
    /// Workload name, provider account such as `stripe:platform`, or organization id.
    name: String,
    /// Why; shown to whoever asks why work does not move.
    #[arg(long)]
    reason: String,
    /// Who decides.
    #[arg(long, env = "USER")]
    actor: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Scope {
    Workload,
    Provider,
    Organization,
}

impl Scope {
    /// Name in the database.
    fn stored(self) -> &'static str {
        match self {
            Self::Workload => "workload",
            Self::Provider => "provider_account",
            Self::Organization => "organization",
        }
    }
}

pub(crate) async fn pause(pool: &PgPool, args: PauseArgs, output: &Output) -> anyhow::Result<Verdict> {
    let name = checked(pool, &args).await?;
    let scope = args.scope.stored();
    let detail = json!({"scope": scope, "name": name}).to_string();
    let (put, paused) = run_tx!(pool, "operator", |tx| async {
        let put = sqlx::query_file!("sql/put_pause.sql", scope, name, args.reason, args.actor)
            .execute(&mut *tx)
            .await?
            .rows_affected();
        let paused = sqlx::query_file!("sql/paused.sql", scope, name).fetch_one(&mut *tx).await?;
        sqlx::query_file!("sql/add_audit.sql", args.actor, "pause", None::<Uuid>, args.reason, detail)
            .execute(&mut *tx)
            .await?;
        Ok::<_, sqlx::Error>((put, paused))
    })?;
    // Whoever paused first decides when it is over, and by the reason that everybody is shown.
    let already = put == 0;
    let answer = json!({"paused": name, "scope": scope, "reason": paused.reason, "paused_by": paused.paused_by, "already": already});
    output.answer(&answer, || {
        if already {
            format!(
                "{scope} {name} is paused already, by {} since {}: {}; that stays, and one `resume` lifts it for everybody. \
                 Yours is in the audit",
                paused.paused_by, paused.paused_at, paused.reason
            )
        } else {
            format!("paused {scope} {name}: nothing new is claimed; what runs ends, what comes in waits")
        }
    })?;
    Ok(Verdict::Good)
}

pub(crate) async fn resume(pool: &PgPool, args: PauseArgs, output: &Output) -> anyhow::Result<Verdict> {
    let (scope, name) = (args.scope.stored(), args.name.clone());
    let detail = json!({"scope": scope, "name": name}).to_string();
    let lifted = run_tx!(pool, "operator", |tx| async {
        let lifted = sqlx::query_file!("sql/lift_pause.sql", scope, name).fetch_optional(&mut *tx).await?;
        if lifted.is_some() {
            sqlx::query_file!("sql/add_audit.sql", args.actor, "resume", None::<Uuid>, args.reason, detail)
                .execute(&mut *tx)
                .await?;
            if args.scope == Scope::Provider {
                sqlx::query_file_scalar!("sql/wake_blocked.sql", name).fetch_one(&mut *tx).await?;
            }
            sqlx::query_file!("sql/ring_intake.sql").execute(&mut *tx).await?;
        }
        Ok::<_, sqlx::Error>(lifted)
    })?;
    let Some(lifted) = lifted else { anyhow::bail!("{scope} {name} is not paused") };
    output.answer(&json!({"resumed": name, "scope": scope, "was_paused_by": lifted.paused_by}), || {
        format!(
            "resumed {scope} {name}, paused by {} since {}: {}",
            lifted.paused_by, lifted.paused_at, lifted.reason
        )
    })?;
    Ok(Verdict::Good)
}

/// A pause of a name that nothing has would look as if it worked.
async fn checked(pool: &PgPool, args: &PauseArgs) -> anyhow::Result<String> {
    if args.scope == Scope::Organization {
        let id: Uuid =
            args.name.parse().with_context(|| format!("organization {:?} is not a UUID", args.name))?;
        return Ok(id.to_string());
    }
    let scope = args.scope.stored();
    let known = sqlx::query_file_scalar!("sql/pausable.sql", scope).fetch_all(pool).await?;
    anyhow::ensure!(
        known.contains(&args.name),
        "no declared kind has {scope} {:?}; known: {}",
        args.name,
        if known.is_empty() { "none, no worker has started yet".to_owned() } else { known.join(", ") }
    );
    Ok(args.name.clone())
}
