//! G13: resource use is bounded, whatever piles up.
//!
//! Predicate: connections, calls in flight (of the whole fleet) and memory stay below what is configured; the rate of
//! calls stays below rate plus burst; a throttled provider is called less, not more; other tenants go on meanwhile.
//!
//! Calls in flight, rate, waits, connections, descriptors and peak memory are checked after every scenario of all
//! promises (`check`, invariants 17 and 25); here are the scenarios that would break them.
//!
//! The races: a backlog of large events before a slow provider, two workers on one provider account, and a storm of
//! "too many requests".

use backline_promises::check::{self, Expected};
use backline_promises::{Reply, SCRIPTED, Stack, eventually};
use serde_json::json;
use uuid::Uuid;

#[tokio::test]
async fn a_backlog_of_large_events_grows_neither_memory_nor_connections() -> anyhow::Result<()> {
    const EVENTS: usize = 400;
    let plan = Stack::builder().later(SCRIPTED, SCRIPTED).env(SCRIPTED, "BACKLINE_DELIVERY_BYTES", "4000000");
    // The consumer is away on purpose while the backlog grows: with the compressed timer every event would be offered
    // again each two seconds.
    let plan = plan.env(SCRIPTED, "BACKLINE_REOFFER_AFTER", "10min");
    let mut stack = plan.env(SCRIPTED, "PROMISE_CONCURRENCY", "8").start().await?;
    // The subscription exists before the backlog.
    stack.member(SCRIPTED)?.start()?;
    let idle = check::memory(stack.member(SCRIPTED)?.process()?.pid(), "VmRSS")?;
    stack.member(SCRIPTED)?.kill9()?;
    let organization = Uuid::now_v7();
    let mut committed = Vec::new();
    for n in 0..EVENTS {
        let payload = json!({"key": n.to_string(), "order": {}, "padding": "x".repeat(100_000)});
        committed.push(stack.emit("ThingOrdered", organization, &n.to_string(), payload).await?);
    }
    eventually("the backlog at the broker", async || {
        Ok(stack.count("select count(*) from backline.outbox").await? == 0)
    })
    .await?;
    stack.member(SCRIPTED)?.start()?;
    let pid = stack.member(SCRIPTED)?.process()?.pid();
    eventually("the backlog to be done", async || {
        let sql = "select count(*) from backline.operation_history";
        Ok(stack.count(sql).await? == i64::try_from(EVENTS)?)
    })
    .await?;
    // 40 MB came in; what may be held at once is 4 MB, and the decoded copies of it.
    let most = check::memory(pid, "VmHWM")?;
    assert!(most < idle + 65_536, "{most} KiB, {idle} KiB when idle");
    assert!(check::most_in_flight(&stack.effects().calls()) > 1, "there was something to bound");
    check::settled(&stack, &Expected { committed, ..Expected::default() }).await
}

#[tokio::test]
async fn two_workers_share_one_concurrency_and_one_rate_and_neither_starves() -> anyhow::Result<()> {
    let mut plan = Stack::builder().worker_as("first", SCRIPTED).worker_as("second", SCRIPTED);
    for name in ["first", "second"] {
        plan = plan.env(name, "PROMISE_CONCURRENCY", "4").env(name, "PROMISE_RATE", "40");
    }
    let mut stack = plan.start().await?;
    let organization = Uuid::now_v7();
    let mut committed = Vec::new();
    for n in 0..200 {
        committed.push(stack.enqueue("effect.bare", organization, &n.to_string(), json!({})).await?);
    }
    check::settled(&stack, &Expected { committed, ..Expected::default() }).await?;
    let most = check::most_in_flight(&stack.effects().calls());
    assert!((2..=4).contains(&most), "{most} in flight");
    for name in ["first", "second"] {
        assert!(stack.metric(name, "backline_operations_finished_total")? > 10.0, "{name} had its share");
    }
    Ok(())
}

#[tokio::test]
async fn a_throttling_storm_slows_the_fleet_down_and_spends_no_attempt() -> anyhow::Result<()> {
    let stack = Stack::builder().worker(SCRIPTED).env(SCRIPTED, "PROMISE_RATE", "40").start().await?;
    let (mut window, mut in_window) = (std::time::Instant::now(), 0);
    stack.effects().answer(move |_, _| {
        if window.elapsed().as_millis() >= 1000 {
            (window, in_window) = (std::time::Instant::now(), 0);
        }
        in_window += 1;
        if in_window <= 15 { Reply::Apply } else { Reply::SlowDown(1) }
    });
    let organization = Uuid::now_v7();
    let mut committed = Vec::new();
    for n in 0..60 {
        committed.push(stack.enqueue("effect.bare", organization, &n.to_string(), json!({})).await?);
    }
    check::settled(&stack, &Expected { committed, ..Expected::recovered() }).await?;
    let calls = stack.effects().calls().len();
    assert!(calls <= 120, "{calls} calls for 60 operations");
    assert_eq!(stack.count("select count(*) from backline.operation_history where attempt > 1").await?, 0);
    Ok(())
}

#[tokio::test]
async fn one_tenants_thousand_do_not_delay_anothers_first() -> anyhow::Result<()> {
    let stack = Stack::builder().worker(SCRIPTED).env(SCRIPTED, "BACKLINE_OPERATIONS", "10").start().await?;
    sqlx::query(
        "select backline.enqueue_operation('effect.bare', $1, n::text, '{}') from generate_series(1, 1000) n",
    )
    .bind(Uuid::now_v7())
    .execute(stack.pool())
    .await?;
    eventually("the first of the many", async || {
        Ok(stack.count("select count(*) from backline.operation_history").await? > 20)
    })
    .await?;
    let id = stack.enqueue("effect.bare", Uuid::now_v7(), "small", json!({})).await?;
    stack.comes_to(id, "succeeded").await?;
    let behind = "select count(*) from backline.operation_history where finished_at < (select finished_at from backline.operation_history where id = $1)";
    let before = stack.number(behind, id).await?;
    assert!(before < 700, "{before} of the other tenant's thousand went first");
    check::settled(&stack, &Expected::default()).await
}
