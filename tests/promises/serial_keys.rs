//! Serial keys: operations of one key never overlap, whatever their kind and whoever dies; a `fifo` key keeps the order.
//!
//! Predicate: between the arrival and the answer of one operation's call no call of another operation of its key
//! arrives; who waits is woken by whoever gave the key up; at rest nobody holds and nobody waits.
//!
//! The races: two workers over few keys, kinds that share a key, a holder that is killed, one in doubt, a head that
//! fails, a head that is dead, and a worker that has taken the head from intake and not accepted it yet.

use backline_promises::check::{self, Expected};
use backline_promises::{EffectCall, Look, Reply, SCRIPTED, Stack, TWO_PEOPLE, eventually};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use uuid::Uuid;

const WAITING: &str =
    "select count(*) from backline.operation where state = 'waiting' and waiting_for = 'serial'";
const HOLDS: &str = "select count(*) from backline.serial_hold";
const SUCCEEDED: &str = "select count(*) from backline.operation_history where outcome = 'succeeded'";

/// Asks for operation `n` of a serial key; the provider gets to see both with the call.
async fn ask(
    stack: &Stack,
    (organization, serial): (Uuid, &str),
    kind: &str,
    n: usize,
    acts: &[&str],
) -> anyhow::Result<Uuid> {
    let input = json!({"value": {"serial": serial, "n": n}, "acts": acts});
    let sql = "select backline.enqueue_operation($1, $2, $3, $4, serial_key => $5)";
    let query = sqlx::query_scalar(sql).bind(kind).bind(organization).bind(n.to_string());
    Ok(query.bind(input).bind(serial).fetch_one(stack.pool()).await?)
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

/// The operator's own command: it promotes who waits and rings as a worker does.
fn operator(stack: &Stack, id: Uuid, what: &[&str]) -> anyhow::Result<()> {
    let id = id.to_string();
    let args = [&["ops"], what, &TWO_PEOPLE, &[&id]].concat();
    stack.operator(&args)?;
    Ok(())
}

#[tokio::test]
async fn operations_of_one_key_never_overlap_and_none_is_left_waiting() -> anyhow::Result<()> {
    const KEYS: [&str; 3] = ["a", "b", "c"];
    let stack = two().await?;
    stack.effects().answer(|_, _| Reply::Hold);
    let organization = Uuid::now_v7();
    let mut ids = Vec::new();
    for n in 0..60 {
        let serial = KEYS[n % KEYS.len()];
        ids.push(ask(&stack, (organization, serial), "effect.serial", n, &["patient"]).await?);
    }
    eventually("one call of each key", async || Ok(stack.effects().calls().len() == KEYS.len())).await?;
    drain(&stack, 60).await?;
    let calls = stack.effects().calls();
    assert_eq!(overlaps(&calls), Vec::<String>::new());
    assert_eq!(calls.len(), 60, "nothing was asked for twice");
    assert!(["first", "second"].iter().all(|name| calls.iter().any(|call| call.credential == *name)));
    at_rest(&stack, &Expected { committed: ids, ..Expected::default() }).await
}

#[tokio::test]
async fn a_key_excludes_across_kinds() -> anyhow::Result<()> {
    const KINDS: [&str; 4] = ["effect.serial", "effect.bare", "effect.fifo", "effect.plain"];
    let stack = two().await?;
    stack.effects().answer(|_, _| Reply::Hold);
    let key = (Uuid::now_v7(), "shared");
    let mut ids = Vec::new();
    for n in 0..20 {
        ids.push(ask(&stack, key, KINDS[n % KINDS.len()], n, &["patient"]).await?);
    }
    // The bystander has no key, so nothing is in its way.
    let free = stack.enqueue("effect.bare", key.0, "free", json!({"value": {"serial": null}})).await?;
    ids.push(free);
    drain(&stack, 21).await?;
    let calls = stack.effects().calls();
    assert_eq!(overlaps(&calls), Vec::<String>::new());
    assert_eq!(calls.len(), 21, "nothing was asked for twice");
    at_rest(&stack, &Expected { committed: ids, ..Expected::default() }).await
}

#[tokio::test]
async fn the_key_of_a_killed_worker_is_free_only_after_its_operation_was_taken_over() -> anyhow::Result<()> {
    let mut stack = Stack::builder().worker_as("first", SCRIPTED).later("second", SCRIPTED).start().await?;
    stack.effects().answer(|_, _| Reply::Hold);
    let key = (Uuid::now_v7(), "k");
    let held = ask(&stack, key, "effect.serial", 0, &["patient"]).await?;
    let mut ids = vec![held];
    eventually("the first call", async || Ok(stack.effects().calls().len() == 1)).await?;
    for n in 1..6 {
        ids.push(ask(&stack, key, "effect.serial", n, &["patient"]).await?);
    }
    waiting(&stack, 5).await?;
    stack.member("first")?.kill9()?;
    stack.member("second")?.start()?;
    eventually("the takeover", async || Ok(stack.effects().calls_of(held).len() == 2)).await?;
    let expired =
        "select count(*) from backline.attempt_evidence where operation_id = $1 and code = 'lease_expired'";
    assert_eq!(stack.number(expired, held).await?, 1, "taken over by way of the lease");
    assert_eq!(stack.count(WAITING).await?, 5, "the others wait as before");
    assert_eq!(stack.effects().calls().len(), 2, "and asked for nothing");
    drain(&stack, 6).await?;
    assert_eq!(overlaps(&stack.effects().calls()), Vec::<String>::new());
    at_rest(&stack, &Expected { committed: ids, ..Expected::recovered() }).await
}

#[tokio::test]
async fn an_operation_in_doubt_keeps_its_key() -> anyhow::Result<()> {
    const LOOKS: usize = 4;
    let stack = two().await?;
    let looks = Arc::new(AtomicUsize::new(0));
    let (looked, at_second) = (Arc::clone(&looks), Arc::new(AtomicUsize::new(usize::MAX)));
    let seen = Arc::clone(&at_second);
    stack.effects().answer(move |call, _| {
        if call.value["n"] == 0 {
            return Reply::Lost;
        }
        seen.store(looked.load(Ordering::SeqCst), Ordering::SeqCst);
        Reply::Apply
    });
    let counted = Arc::clone(&looks);
    stack.effects().look(move |_, nth| {
        counted.store(nth, Ordering::SeqCst);
        if nth < LOOKS { Look::Undecided } else { Look::Truth }
    });
    let key = (Uuid::now_v7(), "k");
    // No key at the provider: only a lookup ends the doubt.
    let doubtful = ask(&stack, key, "effect.plain", 0, &[]).await?;
    eventually("the first call", async || Ok(stack.effects().calls().len() == 1)).await?;
    let second = ask(&stack, key, "effect.serial", 1, &[]).await?;
    stack.comes_to(second, "succeeded").await?;
    assert_eq!(at_second.load(Ordering::SeqCst), LOOKS, "the second started after the lookup that told");
    assert_eq!(stack.state(doubtful).await?, "succeeded");
    assert_eq!(order(&stack), [0, 1]);
    at_rest(&stack, &Expected { committed: vec![doubtful, second], ..Expected::recovered() }).await
}

#[tokio::test]
async fn an_operation_that_waits_for_a_person_keeps_its_key() -> anyhow::Result<()> {
    let stack = two().await?;
    stack.effects().answer(|call, _| if call.value["n"] == 0 { Reply::Lost } else { Reply::Apply });
    stack.effects().look(|_, _| Look::Undecided);
    let key = (Uuid::now_v7(), "k");
    let doubtful = ask(&stack, key, "effect.serial", 0, &[]).await?;
    eventually("the first call", async || Ok(stack.effects().calls().len() == 1)).await?;
    let second = ask(&stack, key, "effect.serial", 1, &[]).await?;
    waiting(&stack, 1).await?;
    stack.comes_to(doubtful, "manual").await?;
    let holder = "select count(*) from backline.serial_hold where operation_id = $1";
    assert_eq!(stack.number(holder, doubtful).await?, 1);
    assert_eq!(stack.count(WAITING).await?, 1);
    assert!(order(&stack).iter().all(|n| *n == 0), "{:?}", order(&stack));
    operator(&stack, doubtful, &["resolve", "--as", "applied", "--evidence", "{\"effect\": 0}"])?;
    stack.comes_to(second, "succeeded").await?;
    assert_eq!(stack.state(doubtful).await?, "succeeded");
    at_rest(&stack, &Expected { committed: vec![doubtful, second], ..Expected::recovered() }).await
}

#[tokio::test]
async fn a_fifo_key_keeps_the_order_while_its_head_fails() -> anyhow::Result<()> {
    let stack = two().await?;
    let key = (Uuid::now_v7(), "k");
    let mut ids = Vec::new();
    for n in 0..20 {
        let acts: &[&str] = if n == 2 { &["transient", "transient", "submit"] } else { &[] };
        ids.push(ask(&stack, key, "effect.fifo", n, acts).await?);
    }
    drain(&stack, 20).await?;
    assert_eq!(order(&stack), (0..20).collect::<Vec<_>>());
    let attempts = "select attempt::bigint from backline.operation_history where id = $1";
    assert_eq!(stack.number(attempts, ids[2]).await?, 3);
    at_rest(&stack, &Expected { committed: ids, ..Expected::recovered() }).await
}

#[tokio::test]
async fn a_fifo_key_keeps_the_order_while_somebody_else_accepts_its_head() -> anyhow::Result<()> {
    let mut stack = Stack::builder().later(SCRIPTED, SCRIPTED).start().await?;
    let key = (Uuid::now_v7(), "k");
    let mut rival = stack.pool().acquire().await?;
    // As a worker that has taken the head from intake and has not accepted it yet; in the end it dies.
    let head = ask(&stack, key, "effect.fifo", 0, &[]).await?;
    sqlx::raw_sql("begin").execute(&mut *rival).await?;
    let take = sqlx::query("delete from backline.intake where operation_id = $1").bind(head);
    assert_eq!(take.execute(&mut *rival).await?.rows_affected(), 1);
    let next = ask(&stack, key, "effect.fifo", 1, &[]).await?;
    let other = ask(&stack, (key.0, "other"), "effect.fifo", 2, &[]).await?;
    stack.member(SCRIPTED)?.start()?;
    // Nobody else's request waits for the rival.
    stack.comes_to(other, "succeeded").await?;
    assert_eq!(order(&stack), [2]);
    sqlx::raw_sql("rollback").execute(&mut *rival).await?;
    stack.comes_to(next, "succeeded").await?;
    assert_eq!(order(&stack), [2, 0, 1]);
    drop(rival);
    at_rest(&stack, &Expected { committed: vec![head, next, other], ..Expected::default() }).await
}

#[tokio::test]
async fn a_dead_head_of_a_fifo_key_blocks_visibly_until_an_operator_gives_it_up() -> anyhow::Result<()> {
    let stack = two().await?;
    let key = (Uuid::now_v7(), "k");
    let head = ask(&stack, key, "effect.fifo", 0, &["poison"]).await?;
    let mut ids = vec![head];
    for n in 1..4 {
        ids.push(ask(&stack, key, "effect.fifo", n, &[]).await?);
    }
    // The same tenant's other keys go on.
    ids.push(ask(&stack, (key.0, "other"), "effect.fifo", 9, &[]).await?);
    stack.comes_to(head, "dead").await?;
    waiting(&stack, 3).await?;
    drain(&stack, 1).await?;
    let holder = "select count(*) from backline.serial_hold where operation_id = $1";
    assert_eq!(stack.number(holder, head).await?, 1, "the dead head is who holds the key");
    assert_eq!(order(&stack), [9]);
    operator(&stack, head, &["discard"])?;
    drain(&stack, 4).await?;
    assert_eq!(stack.state(head).await?, "discarded");
    assert_eq!(order(&stack), [9, 1, 2, 3]);
    at_rest(&stack, &Expected { committed: ids, ..Expected::default() }).await
}
