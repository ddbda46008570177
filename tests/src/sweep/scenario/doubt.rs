//! The provider may have acted, and nobody heard of it.

use super::{Env, open, without_worker};
use crate::sweep::{Bench, must_hold};
use crate::{Action, CrashPlan, SANDBOX, Site, eventually};
use serde_json::{Value, json};
use uuid::Uuid;

fn first_post(fault: &Value) -> Value {
    json!([{"match": {"method": "POST"}, "per": "operation", "when": {"first": 1}, "fault": fault}])
}

/// Every effect happens at the first call, and none of the first answers arrives.
///
/// # Errors
/// A promise is broken.
pub async fn reply_lost(env: Env<'_>) -> anyhow::Result<()> {
    let mut bench = open(env).await?;
    bench.stack().add_faults(SANDBOX, &first_post(&json!({"kind": "drop_reply"})))?;
    bench.pay().await?;
    bench.settled().await?;
    let lost = bench.parts().journal()?.iter().filter(|line| line["replied"] == "dropped").count();
    anyhow::ensure!(lost >= 2, "the planned loss of answers did not happen: {lost}");
    must_hold(&bench).await
}

/// The application takes its wish back while the answer is missing and the effect is there: the effect wins.
///
/// # Errors
/// A promise is broken.
pub async fn cancelled_in_doubt(env: Env<'_>) -> anyhow::Result<()> {
    let mut bench = without_worker(env).await?;
    bench.stack().add_faults(SANDBOX, &first_post(&json!({"kind": "drop_reply"})))?;
    // Long enough for the wish to arrive before the next look.
    bench.add_worker("patient", &[("STRIPE_BACKOFF", "2s".to_owned())])?;
    bench.member("patient")?.start()?;
    let operation = bench.transfer("doubted", 700, "acct_payee").await?;
    let left = "exists (select from backline.operation where id = $1 and failed_at is not null and lease_id is null)";
    until(&bench, operation, left).await?;
    cancel(&bench, operation).await?;
    bench.settled().await?;
    must_hold(&bench).await
}

/// As before, while the request is on its way.
///
/// # Errors
/// A promise is broken.
pub async fn cancelled_while_running(env: Env<'_>) -> anyhow::Result<()> {
    let mut bench = open(env).await?;
    bench.stack().clear_faults(SANDBOX)?;
    bench.stack().add_faults(SANDBOX, &first_post(&json!({"kind": "slow", "delay": "650ms"})))?;
    let operation = bench.transfer("hurried", 700, "acct_payee").await?;
    let id = operation.to_string();
    eventually("the call to be at the provider", async || {
        Ok(bench.parts().journal()?.iter().any(|line| line["operation_id"] == id.as_str()))
    })
    .await?;
    cancel(&bench, operation).await?;
    bench.settled().await?;
    must_hold(&bench).await
}

/// The handler panics with the provider's answer in its hands.
///
/// # Errors
/// A promise is broken.
pub async fn panicking_after_the_reply(env: Env<'_>) -> anyhow::Result<()> {
    let mut bench = without_worker(env).await?;
    let site = Site { name: "stripe.request.after".to_owned(), nth: 1 };
    let plan = CrashPlan::new(site, Action::Panic, bench.parts().dir());
    bench.member("worker")?.start_with(&plan)?;
    bench.transfer("startled", 700, "acct_payee").await?;
    eventually("the panic", async || Ok(plan.fired())).await?;
    bench.settled().await?;
    must_hold(&bench).await
}

async fn cancel(bench: &Bench, operation: Uuid) -> anyhow::Result<()> {
    sqlx::query("select backline.cancel_operation($1)").bind(operation).execute(bench.pool()).await?;
    Ok(())
}

/// Waits for a condition on one operation, `$1`.
pub(super) async fn until(bench: &Bench, operation: Uuid, condition: &'static str) -> anyhow::Result<()> {
    let sql = format!("select {condition}");
    eventually(condition, async || {
        let query = sqlx::query_scalar(sqlx::AssertSqlSafe(sql.clone())).bind(operation);
        Ok(query.fetch_one(bench.pool()).await?)
    })
    .await
}
