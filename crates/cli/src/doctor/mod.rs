//! `backline doctor`: is this deployment sound, and what to do about what is not.

mod broker;
mod check;
mod dead_letters;
mod server;
mod state;
mod topics;

use crate::output::Output;
use crate::pubsub::PubsubArgs;
use crate::topology::Declarations;
use crate::{Verdict, db};
use backline_outbox::{Explained, MIGRATIONS, SchemaError, applied_migrations, check_schema};
use check::{Check, Level};
use clap::Args;
use serde_json::json;
use sqlx::PgPool;
pub(crate) use topics::make as make_topic;

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pubsub: PubsubArgs,
    #[command(flatten)]
    declarations: Declarations,
    /// Topic that workers read, for subscriptions that no declaration is given for.
    #[arg(long, env = "BACKLINE_TOPIC", default_value = "domain-events")]
    events_topic: String,
}

pub(crate) async fn run(url: Option<&str>, args: DoctorArgs, output: &Output) -> anyhow::Result<Verdict> {
    let mut checks = Vec::new();
    let mut waiting = Vec::new();
    match db::connect(url).await {
        Ok(pool) => waiting = database(&pool, &mut checks).await,
        Err(error) => checks.push(Check::fail(
            "database",
            format!("{error:#}"),
            "let DATABASE_URL lead to the primary, and see that it accepts connections from here",
        )),
    }
    pubsub(&args, &waiting, &mut checks).await;
    let failed = checks.iter().filter(|check| check.level == Level::Fail).count();
    let warned = checks.iter().filter(|check| check.level == Level::Warn).count();
    output.answer(&json!({"checks": checks, "failed": failed, "warned": warned}), || {
        let mut lines: Vec<String> = checks.iter().map(Check::line).collect();
        lines.push(format!("{} checks, {warned} to look at, {failed} failed", checks.len()));
        lines.join("\n")
    })?;
    Ok(if failed == 0 { Verdict::Good } else { Verdict::Bad })
}

/// Without the schema the later checks have nothing to ask. Answers with the topics that entries wait for.
async fn database(pool: &PgPool, checks: &mut Vec<Check>) -> Vec<topics::Waiting> {
    let mut all = async || -> sqlx::Result<Vec<topics::Waiting>> {
        checks.push(server::sessions(pool).await);
        checks.extend(server::checks(pool).await?);
        let applied = applied_migrations(pool).await?;
        checks.push(match check_schema(pool).await {
            Ok(()) => Check::ok("migrations", format!("{} applied", applied.len())),
            Err(SchemaError::Database(error)) => return Err(error),
            Err(error) => schema(&error, applied.iter().map(|row| row.version).collect()),
        });
        if applied.is_empty() {
            return Ok(Vec::new());
        }
        checks.extend(state::checks(pool).await?);
        topics::waiting(pool).await
    };
    match all().await {
        Ok(waiting) => waiting,
        Err(error) => {
            checks.push(Check::fail(
                "database",
                Explained(&error).to_string(),
                "mend this first; the checks after it were not made",
            ));
            Vec::new()
        }
    }
}

/// A schema on which relays and workers of this build do not start.
fn schema(error: &SchemaError, applied: Vec<i64>) -> Check {
    let advice = match error {
        SchemaError::Older { .. } | SchemaError::Database(_) => "run `backline migrate`",
        SchemaError::Partial { .. } => {
            "see in the log of that `backline migrate` what stopped it, mend it, and run it again"
        }
        SchemaError::Foreign { .. } => {
            "see that DATABASE_URL names the right database, and that this is a released build; a history that \
             differs is never repaired by editing backline.migration"
        }
    };
    let missing: Vec<String> = MIGRATIONS
        .iter()
        .filter(|one| !applied.contains(&one.version))
        .map(|one| one.version.to_string())
        .collect();
    let found = match missing.as_slice() {
        [] => error.to_string(),
        some => format!("missing: {}; {error}", some.join(", ")),
    };
    Check::fail("migrations", found, advice)
}

/// Topics, subscriptions and dead letters, when a broker is named and answers.
async fn pubsub(args: &DoctorArgs, waiting: &[topics::Waiting], checks: &mut Vec<Check>) {
    let (emulator, project) = (&args.pubsub.pubsub_emulator_host, &args.pubsub.pubsub_project);
    let reachable = broker::reachable(emulator.as_deref(), project.as_deref()).await;
    let answers = reachable.level == Level::Ok;
    checks.push(reachable);
    if !answers || !args.pubsub.is_given() {
        return;
    }
    let broker = match args.pubsub.connect().await {
        Ok(broker) => broker,
        Err(error) => {
            let found = format!("topics and subscriptions are not checked: {error:#}");
            return checks.push(Check::warn("pubsub", found, "run doctor with credentials that may look"));
        }
    };
    let wanted = topics::wanted(&args.declarations, checks).await;
    let (found, owed) = topics::checks(&broker, &args.events_topic, waiting, wanted.as_ref(), checks).await;
    if owed && let Some(unpublished) = checks.iter_mut().find(|check| check.name == "unpublished") {
        unpublished.advise("make the missing topic, see `topics` below; a relay that runs hands over then");
    }
    topics::readers(&broker, &args.events_topic, waiting, &found, checks).await;
    if let Some(wanted) = &wanted {
        checks.push(topics::declared(&broker, wanted).await);
    }
    dead_letters::checks(&args.pubsub, &broker, &found, checks).await;
    checks.extend(dead_letters::own(&broker, &found).await);
}
