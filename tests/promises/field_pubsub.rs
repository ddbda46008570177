//! Field cases of Pub/Sub: streams that end, limits that do not multiply, counters that lie, and one message that brings
//! back its neighbors.

use backline_promises::check::{self, CANARY, Expected};
use backline_promises::{EMULATOR, SCRIPTED, Stack, eventually, http};
use serde_json::{Value, json};
use uuid::Uuid;

async fn order(stack: &Stack, count: usize) -> anyhow::Result<Vec<Uuid>> {
    let organization = Uuid::now_v7();
    let mut ids = Vec::new();
    for n in 0..count {
        let payload = json!({"key": format!("n{n}"), "order": {"value": CANARY}});
        ids.push(stack.emit("ThingOrdered", organization, "one", payload).await?);
    }
    Ok(ids)
}

/// What the emulator counts.
fn stats(stack: &mut Stack) -> anyhow::Result<Value> {
    let emulator = stack.member(EMULATOR)?.address()?;
    Ok(serde_json::from_str(&http::must(emulator, "GET", "/stats", &Value::Null)?)?)
}

const DONE: &str = "select count(*) from backline.operation_history where outcome = 'succeeded'";

/// Case 51: <https://github.com/googleapis/google-cloud-python/issues/9252>
#[tokio::test]
async fn messages_behind_a_slow_handler_do_not_expire_because_they_are_durable_first() -> anyhow::Result<()> {
    let plan = Stack::builder().worker(SCRIPTED).env(SCRIPTED, "BACKLINE_OPERATIONS", "1");
    let mut stack = plan.start().await?;
    stack.effects().answer(|_, nth| {
        if nth == 1 { backline_promises::Reply::Hold } else { backline_promises::Reply::Apply }
    });
    let committed = order(&stack, 20).await?;
    // One handler is busy; all twenty are sealed and acknowledged meanwhile.
    eventually("the seals", async || Ok(stack.count("select count(*) from backline.seal").await? == 20))
        .await?;
    eventually("an empty subscription", async || {
        let subscriptions = &stats(&mut stack)?["subscriptions"];
        Ok(subscriptions["projects/backline-promises/subscriptions/domain-events.promises"]["unacked"] == 0)
    })
    .await?;
    stack.effects().answer(|_, _| backline_promises::Reply::Apply);
    stack.effects().release();
    check::settled(&stack, &Expected { committed, ..Expected::default() }).await?;
    assert_eq!(stack.count(DONE).await?, 20);
    Ok(())
}

/// Case 53: <https://github.com/googleapis/java-pubsub/issues/2480>. What is open at once is counted in the tests of the
/// broker's crate; here it is what the process holds.
#[tokio::test]
async fn a_worker_with_a_limit_goes_on_over_eight_streams_and_a_hundred_expired_deadlines()
-> anyhow::Result<()> {
    const EVENTS: i32 = 600;
    let plan = Stack::builder().later(SCRIPTED, SCRIPTED).env(SCRIPTED, "BACKLINE_DELIVERIES", "100");
    let plan = plan.arg(EMULATOR, "--ack-deadline-cap").arg(EMULATOR, "2000");
    // The consumer is away on purpose while the backlog grows, and late on purpose afterwards.
    let mut stack = plan.env(SCRIPTED, "BACKLINE_REOFFER_AFTER", "10min").start().await?;
    // The subscription exists before the backlog.
    stack.member(SCRIPTED)?.start()?;
    let idle = check::memory(stack.member(SCRIPTED)?.process()?.pid(), "VmRSS")?;
    stack.member(SCRIPTED)?.kill9()?;
    let sql = "select backline.emit_event('ThingOrdered', $1, $1, 'order', n::text,
        jsonb_build_object('key', n::text, 'order', '{}'::jsonb, 'padding', repeat('x', 100000)))
        from generate_series(1, $2) n";
    let committed: Vec<Uuid> =
        sqlx::query_scalar(sql).bind(Uuid::now_v7()).bind(EVENTS).fetch_all(stack.pool()).await?;
    eventually("the backlog at the broker", async || {
        Ok(stack.count("select count(*) from backline.outbox").await? == 0)
    })
    .await?;

    let streams = json!([{"end": "CANCELLED", "times": 8, "after_messages": 20}]);
    stack.add_faults(EMULATOR, &json!({"streams": streams, "drop_acks": {"every": 4}}))?;
    stack.member(SCRIPTED)?.start()?;
    let pid = stack.member(SCRIPTED)?.process()?.pid();
    eventually("eight ends and a hundred expired deadlines", async || {
        let stats = stats(&mut stack)?;
        Ok(stats["leases_expired"].as_u64() >= Some(100) && stats["faults_fired"]["streams_ended"] == 8)
    })
    .await?;
    stack.clear_faults(EMULATOR)?;
    eventually("the backlog to be done", async || Ok(stack.count(DONE).await? == i64::from(EVENTS))).await?;
    // 60 MB came in, 10 MB of them at most at once.
    let most = check::memory(pid, "VmHWM")?;
    assert!(most < idle + 65_536, "{most} KiB, {idle} KiB when idle");
    check::settled(&stack, &Expected { committed, ..Expected::default() }).await
}

/// Case 55: <https://github.com/yoshidan/google-cloud-rust/issues/389>
#[tokio::test]
async fn a_stream_that_ends_in_any_way_is_opened_again() -> anyhow::Result<()> {
    // A delivery that a reset swallowed comes again when its deadline passes: seconds here, a minute in production.
    let plan = Stack::builder().worker(SCRIPTED).arg(EMULATOR, "--ack-deadline-cap").arg(EMULATOR, "2000");
    let mut stack = plan.start().await?;
    let mut committed = Vec::new();
    for (n, end) in ["CANCELLED", "UNAVAILABLE", "INTERNAL", "EOF", "RESET"].into_iter().enumerate() {
        stack.add_faults(EMULATOR, &json!({"streams": [{"end": end, "times": 2, "after_messages": 1}]}))?;
        committed.extend(order(&stack, 20).await?);
        let wanted = i64::try_from((n + 1) * 20)?;
        let drained = eventually("the backlog", async || Ok(stack.count(DONE).await? == wanted)).await;
        anyhow::ensure!(drained.is_ok(), "after {end}: {drained:?}");
    }
    let stats = stats(&mut stack)?;
    assert!(stats["faults_fired"]["streams_ended"].as_u64() >= Some(5), "{stats}");
    let opened = stats["streams_opened"].as_u64().unwrap_or(0);
    assert!(opened <= 40, "{opened} streams: reconnecting has a backoff");
    let ready = http::call(stack.member(SCRIPTED)?.address()?, "GET", "/readyz", &Value::Null)?;
    assert_eq!(ready.0, 200, "{}", ready.1);
    check::settled(&stack, &Expected { committed, ..Expected::default() }).await
}

/// Case 61: <https://github.com/googleapis/google-cloud-ruby/issues/21640>
#[tokio::test]
async fn the_brokers_attempt_counter_decides_nothing() -> anyhow::Result<()> {
    for values in [json!([1, 2, 1, 2, 90, 1, 2]), json!([0, 0, 0, 0, 0, 0, 0])] {
        let mut stack = Stack::builder().worker(SCRIPTED).start().await?;
        stack.add_faults(EMULATOR, &json!({"delivery_attempts": {"values": values}}))?;
        let organization = Uuid::now_v7();
        let payload = json!({"key": "failing", "order": {"acts": ["transient"]}});
        stack.emit("ThingOrdered", organization, "a", payload).await?;
        let sql = "select backline.operation_id($1, 'effect.keyed', 'failing')";
        let id: Uuid = sqlx::query_scalar(sql).bind(organization).fetch_one(stack.pool()).await?;
        stack.comes_to(id, "dead").await?;
        assert_eq!(
            stack.number("select attempt::bigint from backline.operation where id = $1", id).await?,
            5
        );
        check::settled(&stack, &Expected { stuck: 1, ..Expected::recovered() }).await?;
    }
    Ok(())
}

/// Case 63: <https://github.com/googleapis/nodejs-pubsub/issues/1507>
#[tokio::test]
async fn one_refused_message_brings_its_neighbors_back_without_second_effects() -> anyhow::Result<()> {
    let mut stack = Stack::builder().worker(SCRIPTED).start().await?;
    // Sequences do not roll back: number 7 is refused three times, together with its batch and alone.
    let sql = "create sequence app.refused; create function app.refuse_seven() returns trigger language plpgsql as $$ begin
        if new.operation_key = 'n7' and nextval('app.refused') <= 4 then raise exception 'refused for the test'; end if; return new; end $$;
        create trigger refuse_seven before insert on backline.operation for each row execute function app.refuse_seven()";
    sqlx::raw_sql(sql).execute(stack.pool()).await?;
    let committed = order(&stack, 10).await?;
    check::settled(&stack, &Expected { committed, ..Expected::default() }).await?;
    assert!(stack.count("select last_value from app.refused").await? >= 4, "refused three times");
    let stats = stats(&mut stack)?;
    assert!(stats["nacks"].as_u64() >= Some(1), "{stats}");
    assert_eq!(stack.count(DONE).await?, 10);
    assert_eq!(stack.effects().calls().len(), 10);
    Ok(())
}
