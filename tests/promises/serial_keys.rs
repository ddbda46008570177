//! Serial keys: operations of one key never overlap, whatever their kind and whoever dies; a `fifo` key keeps the order.
//!
//! Predicate: between the arrival and the answer of one operation's call no call of another operation of its key
//! arrives; who waits is woken by whoever gave the key up; at rest nobody holds and nobody waits.
//!
//! The races: two workers over few keys, kinds that share a key, a holder that is killed, one in doubt, a head that
//! fails, a head that is dead, and a worker that dies while it accepts the head.

use anyhow::{Context, ensure};
use backline_dev_cluster::paths;
use backline_promises::check::{self, Expected};
use backline_promises::{Action, CrashPlan, EffectCall, Look, Reply, SCRIPTED, Site, Stack, eventually};
use serde_json::{Value, json};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use uuid::Uuid;

const WAITING: &str =
    "select count(*) from backline.operation where state = 'waiting' and waiting_for = 'serial'";
const HOLDS: &str = "select count(*) from backline.serial_hold";
const SUCCEEDED: &str = "select count(*) from backline.operation_history where outcome = 'succeeded'";

/// One tenant's requests.
struct Tenant<'a> {
    stack: &'a Stack,
    organization: Uuid,
}

impl Tenant<'_> {
    /// Asks for an operation of `serial`; the provider gets to see the key with the call.
    async fn ask(&self, kind: &str, key: usize, serial: &str, acts: &[&str]) -> anyhow::Result<Uuid> {
        let input = json!({"value": {"serial": serial, "n": key}, "acts": acts});
        let sql = "select backline.enqueue_operation($1, $2, $3, $4, serial_key => $5)";
        let query = sqlx::query_scalar(sql).bind(kind).bind(self.organization).bind(key.to_string());
        Ok(query.bind(input).bind(serial).fetch_one(self.stack.pool()).await?)
    }
}

fn tenant(stack: &Stack) -> Tenant<'_> {
    Tenant { stack, organization: Uuid::now_v7() }
}

/// Two workers, told apart by their credential.
async fn two() -> anyhow::Result<Stack> {
    let plan = Stack::builder().worker_as("first", SCRIPTED).worker_as("second", SCRIPTED);
    let plan = plan.env("second", "PROMISE_CREDENTIAL", "second");
    // Fewer than keys: nobody can hold all of them alone.
    plan.env("first", "BACKLINE_OPERATIONS", "2").env("second", "BACKLINE_OPERATIONS", "2").start().await
}

/// Lets held calls go, look by look, until `count` operations have succeeded: each call lasts long enough for another
/// one to overlap.
async fn drain(stack: &Stack, count: i64) -> anyhow::Result<()> {
    eventually("every operation to succeed", async || {
        stack.effects().release();
        Ok(stack.count(SUCCEEDED).await? == count)
    })
    .await
}

async fn waiting(stack: &Stack, count: i64) -> anyhow::Result<()> {
    eventually("the others to wait", async || Ok(stack.count(WAITING).await? == count)).await
}

/// Pairs of calls of one key and two operations that were at the provider at the same time.
fn overlaps(calls: &[EffectCall]) -> Vec<String> {
    let mut found = Vec::new();
    for (n, call) in calls.iter().enumerate() {
        let rivals = calls.iter().skip(n + 1).filter(|later| {
            later.value["serial"] == call.value["serial"]
                && later.operation != call.operation
                && call.answered.is_none_or(|answered| later.arrived < answered)
        });
        found.extend(rivals.map(|later| format!("{} during {}", later.value, call.value)));
    }
    found
}

/// What the provider was asked for, in order of arrival.
fn order(stack: &Stack) -> Vec<Value> {
    stack.effects().calls().iter().map(|call| call.value["n"].clone()).collect()
}

async fn at_rest(stack: &Stack, expected: &Expected) -> anyhow::Result<()> {
    check::settled(stack, expected).await?;
    assert_eq!(stack.count(HOLDS).await?, 0, "nobody holds a key at rest");
    assert_eq!(stack.count(WAITING).await?, 0, "nobody waits at rest");
    Ok(())
}

/// The operator's own command, from inspection to the audit.
fn discard(stack: &Stack, id: Uuid) -> anyhow::Result<()> {
    let done = Command::new(paths::binary("backline")?)
        .args(["ops", "discard", "--reason", "drill", "--actor", "first", "--approved-by", "second"])
        .arg(id.to_string())
        .env("DATABASE_URL", stack.database_url())
        .output()
        .context("starting the operator's command")?;
    ensure!(done.status.success(), "discard: {}", String::from_utf8_lossy(&done.stderr));
    Ok(())
}

#[tokio::test]
async fn operations_of_one_key_never_overlap_and_none_is_left_waiting() -> anyhow::Result<()> {
    const KEYS: usize = 3;
    let stack = two().await?;
    stack.effects().answer(|_, _| Reply::Hold);
    let mut ids = Vec::new();
    for n in 0..20 * KEYS {
        let serial = format!("key {}", n % KEYS);
        ids.push(tenant_of(&stack, &ids).ask("effect.serial", n, &serial, &["patient"]).await?);
    }
    eventually("one call of each key", async || Ok(stack.effects().calls().len() == KEYS)).await?;
    drain(&stack, 60).await?;
    let calls = stack.effects().calls();
    assert_eq!(overlaps(&calls), Vec::<String>::new());
    assert_eq!(calls.len(), 60, "nothing was asked for twice");
    assert!(["first", "second"].iter().all(|name| calls.iter().any(|call| call.credential == *name)));
    at_rest(&stack, &Expected { committed: ids, ..Expected::default() }).await
}
