//! Before the first claim: declare what this build performs, and make sure the database is the one we knew.

use crate::Error;
use crate::author::Serial;
use crate::author::erased::Handler;
use crate::claim::{MadeReady, lower};
use crate::finish::Handlers;
use crate::observe::Progress;
use crate::run::pools::Pools;
use backline_outbox::{Pauses, await_database, is_outage, run_tx};
use sqlx::{PgConnection, PgPool};
use std::time::Duration;
use uuid::Uuid;

/// Everything before the first claim. An outage is waited out, at whatever step it is met: `starting` shows it.
pub(crate) async fn begin(
    pools: &Pools,
    limit: Duration,
    starting: &Progress,
    workload: &str,
    handlers: &Handlers,
) -> Result<(), Error> {
    let mut pauses = Pauses::default();
    loop {
        await_database(&pools.work, limit, |error| starting.trouble(&error.to_string())).await?;
        let declared = async {
            adopt_incarnation(&pools.work).await?;
            declare(&pools.work, workload, handlers).await
        };
        match declared.await {
            Err(Error::Database(error)) if is_outage(&error) => {
                let error = Error::Database(error);
                tracing::warn!(%error, "the database went away during the start");
                starting.trouble(&error.to_string());
                pauses.next().await;
            }
            declared => return declared,
        }
    }
}

/// Declares every kind, wakes what waited for it, and lifts the breaker's pauses of its provider accounts.
async fn declare(pool: &PgPool, workload: &str, handlers: &Handlers) -> Result<(), Error> {
    let accounts: Vec<String> = handlers.values().map(|h| h.spec().provider_account.clone()).collect();
    let kinds: Vec<String> = handlers.keys().map(|kind| (*kind).to_owned()).collect();
    run_tx!(pool, "declare", |tx| async {
        for handler in handlers.values() {
            declare_kind(tx, workload, handler.as_ref()).await?;
        }
        wake_capable(tx, &kinds).await?;
        let resumed =
            sqlx::query_file_scalar!("sql/resume_accounts.sql", &accounts).fetch_all(&mut *tx).await?;
        for account in resumed {
            let woken = sqlx::query_file_scalar!("sql/wake_blocked.sql", account).fetch_one(&mut *tx).await?;
            tracing::warn!(
                provider = account,
                woken,
                "resumed a provider account that the breaker had paused"
            );
        }
        Ok::<_, Error>(())
    })
}

async fn declare_kind(tx: &mut PgConnection, workload: &str, handler: &dyn Handler) -> Result<(), Error> {
    let spec = handler.spec();
    let serial = match spec.serial {
        Serial::Exclusive => "exclusive",
        Serial::Fifo => "fifo",
    };
    let window = spec.idempotency_window.map(millis);
    let retention = if spec.financial { "financial" } else { "standard" };
    sqlx::query_file!(
        "sql/declare_kind.sql",
        handler.kind(),
        workload,
        spec.mode.as_str(),
        spec.provider_account,
        serial,
        window.is_some(),
        spec.financial,
        spec.irreversible,
        window,
        millis(spec.linger),
        millis(spec.lookup_lag),
        millis(spec.request_timeout),
        spec.max_input_version,
        spec.keep_input,
        retention,
        None::<i64>,
    )
    .execute(tx)
    .await?;
    Ok(())
}

async fn wake_capable(tx: &mut PgConnection, kinds: &[String]) -> Result<(), Error> {
    let woken = sqlx::query_file!("sql/wake_capable.sql", kinds).fetch_all(&mut *tx).await?;
    let fifo: Vec<Uuid> = woken.iter().filter(|row| row.fifo == Some(true)).map(|row| row.id).collect();
    if !fifo.is_empty() {
        sqlx::query_file_scalar!("sql/enter_fifo.sql", &fifo).fetch_all(&mut *tx).await?;
    }
    let ready: Vec<MadeReady> = woken
        .into_iter()
        .map(|row| MadeReady {
            kind: row.kind,
            organization: row.organization,
            priority: row.priority,
            due_at: row.due_at,
        })
        .collect();
    lower(tx, &ready).await?;
    Ok(())
}

/// Compares the server's incarnation with the stored one. After a failover or restore, commits may be missing and
/// sequences rewound: everything that may have been presented becomes unknown before anything is claimed.
pub(crate) async fn adopt_incarnation(pool: &PgPool) -> Result<(), Error> {
    run_tx!(pool, "incarnation", |tx| async {
        let seen = sqlx::query_file!("sql/compare_incarnation.sql").fetch_one(&mut *tx).await?;
        if seen.same {
            return Ok::<_, Error>(());
        }
        let moved = sqlx::query_file!("sql/unknown_after_restore.sql").fetch_one(&mut *tx).await?;
        sqlx::query_file!("sql/adopt_incarnation.sql").execute(&mut *tx).await?;
        metrics::counter!("backline_incarnation_changes_total").increment(1);
        tracing::error!(
            unknown = moved.unknown,
            "the database is another incarnation (failover or restore); open operations are looked up first"
        );
        Ok(())
    })
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
