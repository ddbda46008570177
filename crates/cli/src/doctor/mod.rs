//! `backline doctor`: is this deployment sound, and what to do about what is not.

mod broker;
mod check;
mod server;
mod state;

use crate::output::Output;
use crate::{Verdict, db, migrate};
use check::{Check, Level};
use clap::Args;
use serde_json::json;
use sqlx::PgPool;

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Pub/Sub emulator as host:port; without it the real service is tried when a project is given.
    #[arg(long, env = "PUBSUB_EMULATOR_HOST")]
    pub(crate) pubsub_emulator_host: Option<String>,
    /// Google Cloud project of the topics.
    #[arg(long, env = "PUBSUB_PROJECT_ID")]
    pub(crate) pubsub_project: Option<String>,
}

pub(crate) async fn run(url: Option<&str>, args: DoctorArgs, output: &Output) -> anyhow::Result<Verdict> {
    let mut checks = Vec::new();
    match db::connect(url).await {
        Ok(pool) => database(&pool, &mut checks).await,
        Err(error) => checks.push(Check::fail(
            "database",
            format!("{error:#}"),
            "set DATABASE_URL to the primary and see that it accepts connections from here",
        )),
    }
    checks
        .push(broker::reachable(args.pubsub_emulator_host.as_deref(), args.pubsub_project.as_deref()).await);
    let failed = checks.iter().filter(|check| check.level == Level::Fail).count();
    let warned = checks.iter().filter(|check| check.level == Level::Warn).count();
    output.answer(&json!({"checks": checks, "failed": failed, "warned": warned}), || {
        let mut lines: Vec<String> = checks.iter().map(Check::line).collect();
        lines.push(format!("{} checks, {warned} to look at, {failed} failed", checks.len()));
        lines.join("\n")
    })?;
    Ok(if failed == 0 { Verdict::Good } else { Verdict::Bad })
}

/// Without the schema the later checks have nothing to ask.
async fn database(pool: &PgPool, checks: &mut Vec<Check>) {
    let mut all = async || -> sqlx::Result<()> {
        checks.extend(server::checks(pool).await?);
        let applied = migrate::applied(pool).await?;
        let missing: Vec<String> = migrate::MIGRATIONS
            .iter()
            .filter(|one| !applied.contains(&one.version))
            .map(|one| one.version.to_string())
            .collect();
        checks.push(match (missing.is_empty(), applied.len()) {
            (true, count) => Check::ok("migrations", format!("{count} applied")),
            (false, _) => Check::fail(
                "migrations",
                format!("missing: {}", missing.join(", ")),
                "run `backline migrate`",
            ),
        });
        if !applied.is_empty() {
            checks.extend(state::checks(pool).await?);
        }
        Ok(())
    };
    if let Err(error) = all().await {
        checks.push(Check::fail(
            "database",
            error.to_string(),
            "mend this first; the checks after it were not made",
        ));
    }
}
