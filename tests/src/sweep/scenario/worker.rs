//! Workers that stop, come back, and find the world changed.

use super::doubt::until;
use super::{Env, open, without_worker};
use crate::check::promised;
use crate::sweep::{Bench, Intended, must_hold};
use crate::{Action, CrashPlan, SANDBOX, Site, eventually};
use anyhow::Context;
use serde_json::json;
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

fn plan(bench: &Bench, name: &str, action: Action, who: &str) -> anyhow::Result<CrashPlan> {
    let dir = bench.parts().dir().join(who);
    std::fs::create_dir_all(&dir)?;
    Ok(CrashPlan::new(Site { name: name.to_owned(), nth: 1 }, action, &dir))
}

async fn token(bench: &Bench, operation: Uuid) -> anyhow::Result<Option<i64>> {
    let query = sqlx::query_scalar("select token from backline.operation where id = $1").bind(operation);
    Ok(query.fetch_optional(bench.pool()).await?.flatten())
}

/// Waits for the end of the attempt that held a stale token: refused, with what it brought kept as evidence.
async fn refused(bench: &Bench, operation: Uuid, token: i64) -> anyhow::Result<()> {
    let sql = "select exists (select from backline.attempt_evidence where operation_id = $1 and token = $2 and fenced),
        exists (select from backline.operation_history where id = $1 and token = $2)";
    let (mut refused, mut written) = (false, false);
    eventually("the stale attempt to end", async || {
        (refused, written) = sqlx::query_as(sql).bind(operation).bind(token).fetch_one(bench.pool()).await?;
        Ok(refused || written)
    })
    .await?;
    promised(refused && !written, || "a stale holder wrote the outcome".to_owned())
}

/// A transaction of the test's own, open until its connection is closed.
async fn lock(bench: &Bench, statement: &'static str) -> anyhow::Result<PgConnection> {
    let mut connection = bench.pool().acquire().await?.detach();
    sqlx::query("begin").execute(&mut connection).await?;
    sqlx::query(statement).execute(&mut connection).await?;
    Ok(connection)
}

/// A holder sleeps with the answer in its hands, a second one takes over and sleeps as well; the first wakes up. Its
/// write must be refused although the operation is still running.
///
/// # Errors
/// A promise is broken.
pub async fn two_zombies(env: Env<'_>) -> anyhow::Result<()> {
    let mut bench = without_worker(env).await?;
    let operation = bench.transfer("contested", 700, "acct_payee").await?;
    let first = plan(&bench, "stripe.request.after", Action::Stop, "first")?;
    bench.launch_until_fired("worker", &first).await?;
    let stale = token(&bench, operation).await?.context("the first holds no claim")?;
    let second = plan(&bench, "stripe.request.after", Action::Stop, "second")?;
    // Long enough that nobody takes its claim while it sleeps.
    bench.add_worker("successor", &[("BACKLINE_LEASE", "30s".to_owned())])?;
    bench.launch_until_fired("successor", &second).await?;
    bench.member("worker")?.resume()?;
    refused(&bench, operation, stale).await?;
    bench.member("successor")?.resume()?;
    bench.settled().await?;
    must_hold(&bench).await
}

/// Desired state is asked for again while an older generation is being converged.
///
/// # Errors
/// A promise is broken.
pub async fn asked_again_meanwhile(env: Env<'_>) -> anyhow::Result<()> {
    let mut bench = open(env).await?;
    let slow = json!([{"match": {"method": "GET"}, "fault": {"kind": "slow", "delay": "650ms"}}]);
    bench.stack().add_faults(SANDBOX, &slow)?;
    let parent = bench.transfer("followed", 700, "acct_payee").await?;
    let settlement =
        Intended::new(bench.organization(), "stripe.settlement", &parent.to_string(), "succeeded");
    let operation = settlement.operation();
    until(&bench, operation, "exists (select from backline.operation where id = $1 and state = 'running')")
        .await?;
    sqlx::query("select backline.enqueue_operation(kind, organization, operation_key, input) from backline.operation where id = $1")
        .bind(operation)
        .execute(bench.pool())
        .await?;
    until(&bench, operation, "not exists (select from backline.intake where operation_id = $1)").await?;
    bench.stack().clear_faults(SANDBOX)?;
    bench.settled().await?;
    let sql = "select max(generation) from backline.operation_history where id = $1";
    let last: Option<i64> = sqlx::query_scalar(sql).bind(operation).fetch_one(bench.pool()).await?;
    promised(last == Some(2), || format!("generation 2 was asked for and {last:?} is the last that ended"))?;
    must_hold(&bench).await
}

/// The database takes nothing in while a delivery is at the worker, which then dies. The broker is the only one that
/// still knows of it: the reoffer is not due within this test.
///
/// # Errors
/// A promise is broken.
pub async fn database_blocked(env: Env<'_>) -> anyhow::Result<()> {
    let mut env = env.to_vec();
    env.push(("BACKLINE_REOFFER_AFTER", "10min".to_owned()));
    let mut bench = without_worker(&env).await?;
    bench.add_worker("worker", &[("BACKLINE_REOFFER_AFTER", "10min".to_owned())])?;
    bench.member("worker")?.start()?;
    let lock = lock(&bench, "lock table backline.seal in access exclusive mode").await?;
    bench.transfer("stuck", 700, "acct_payee").await?;
    eventually("a delivery to wait for the database", async || {
        let sql = "select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
            and query_start < clock_timestamp() - interval '500 ms')";
        Ok(sqlx::query_scalar(sql).fetch_one(bench.pool()).await?)
    })
    .await?;
    bench.member("worker")?.kill9()?;
    lock.close().await?;
    bench.forget_slices().await?;
    bench.member("worker")?.start()?;
    bench.settled().await?;
    must_hold(&bench).await
}

/// One worker looks for expired leases and sleeps; meanwhile the lease that had looked expired, because the database's
/// clock had stepped, is renewed by its living holder. A living holder loses nothing.
///
/// # Errors
/// A promise is broken.
pub async fn clock_step(env: Env<'_>) -> anyhow::Result<()> {
    let mut bench = without_worker(env).await?;
    let slow = json!([{"match": {"method": "POST"}, "fault": {"kind": "slow", "delay": "10500ms"}}]);
    bench.stack().add_faults(SANDBOX, &slow)?;
    bench.add_worker(
        "holder",
        &[
            ("BACKLINE_LEASE", "25s".to_owned()),
            ("STRIPE_REQUEST_TIMEOUT", "11s".to_owned()),
            ("BACKLINE_SWEEP", "1h".to_owned()),
        ],
    )?;
    bench.member("holder")?.start()?;
    let operation = bench.transfer("held", 700, "acct_payee").await?;
    let id = operation.to_string();
    eventually("the call to be at the provider", async || {
        Ok(bench.parts().journal()?.iter().any(|line| line["operation_id"] == id.as_str()))
    })
    .await?;
    // The step, and a lock behind it that keeps the holder from renewing at once.
    sqlx::query("update backline.lease set until = clock_timestamp() - interval '1 s'")
        .execute(bench.pool())
        .await?;
    let lock = lock(&bench, "select from backline.lease for update").await?;
    let stop = plan(&bench, "tx.reclaim.begin.before", Action::Stop, "sweeper")?;
    bench.launch_until_fired("worker-2", &stop).await?;
    lock.close().await?;
    until(
        &bench,
        operation,
        "not exists (select from backline.operation o join backline.lease l on l.id = o.lease_id
        where o.id = $1 and l.until < clock_timestamp())",
    )
    .await?;
    bench.member("worker-2")?.resume()?;
    bench.settled().await?;
    let sql =
        "select count(*) from backline.attempt_evidence where operation_id = $1 and code = 'lease_expired'";
    let lost: i64 = sqlx::query_scalar(sql).bind(operation).fetch_one(bench.pool()).await?;
    promised(lost == 0, || "a living holder whose lease was in force lost its claim".to_owned())?;
    must_hold(&bench).await
}

/// The process dies with the last attempt that the policy allows.
///
/// # Errors
/// A promise is broken.
pub async fn dead_at_the_last_attempt(env: Env<'_>) -> anyhow::Result<()> {
    let mut bench = without_worker(env).await?;
    let operation = bench.transfer("worn", 700, "acct_payee").await?;
    let kill = plan(&bench, "stripe.request.after", Action::Kill, "last")?;
    bench.launch_until_fired("worker", &kill).await?;
    eventually("the process to be gone", async || Ok(bench.member("worker")?.ended()?.is_some())).await?;
    // As if the attempts before had ended the same way.
    let last = i32::try_from(backline_failure::Policy::default().max_attempts)?;
    let query = sqlx::query("update backline.operation set attempt = $2 where id = $1 and state = 'running'");
    let done = query.bind(operation).bind(last).execute(bench.pool()).await?;
    anyhow::ensure!(done.rows_affected() == 1, "the operation is not running");
    bench.forget_slices().await?;
    bench.member("worker")?.start()?;
    bench.settled().await?;
    must_hold(&bench).await
}

/// A holder sleeps between claim and request. Others find that nothing was applied, outside the window in which the
/// provider knows the key, and pay under the next one. What the sleeper had in mind must not leave any more.
///
/// # Errors
/// A promise is broken.
pub async fn late_request(env: Env<'_>) -> anyhow::Result<()> {
    let mut bench = without_worker(env).await?;
    let operation = bench.request_transfer("delayed", 700).await?;
    let stop = plan(&bench, "tx.claim.commit.after", Action::Stop, "sleeper")?;
    bench.launch_until_fired("worker", &stop).await?;
    let stale = token(&bench, operation).await?.context("the sleeper holds no claim")?;
    sqlx::query("update backline.operation set first_submitted_at = first_submitted_at - interval '25 h' where id = $1")
        .bind(operation)
        .execute(bench.pool())
        .await?;
    bench.member("worker-2")?.start()?;
    bench.settled().await?;
    bench.member("worker")?.resume()?;
    refused(&bench, operation, stale).await?;
    bench.settled().await?;
    must_hold(&bench).await
}
