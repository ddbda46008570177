//! G2, and H2: every intent is eventually handed over, or visibly parked with a reason.
//!
//! Predicate: after the faults end, every committed event is in the broker's log, or is parked with a reason that a view
//! and a metric show; every committed request is an operation that ends, or waits visibly for somebody who can do it.
//!
//! The races: a crash after COMMIT and before publication, a subscription whose messages vanish, deliveries that no
//! build can read, and handlers that always fail.

use backline_promises::check::{self, CANARY, Expected};
use backline_promises::{EMULATOR, RELAY, SCRIPTED, Stack, eventually, http};
use serde_json::{Value, json};
use uuid::Uuid;

fn ordered(key: &str) -> Value {
    json!({"key": key, "order": {"value": CANARY}})
}

#[tokio::test]
async fn what_was_committed_while_nobody_was_there_is_found_later() -> anyhow::Result<()> {
    let mut stack = Stack::builder().worker(SCRIPTED).start().await?;
    stack.member(RELAY)?.kill9()?;
    stack.member(SCRIPTED)?.kill9()?;
    stack.member(EMULATOR)?.kill9()?;
    let organization = Uuid::now_v7();
    let mut committed = Vec::new();
    for n in 0..10 {
        committed
            .push(stack.emit("ThingOrdered", organization, &n.to_string(), ordered(&format!("e{n}"))).await?);
        committed.push(stack.enqueue("effect.bare", organization, &n.to_string(), json!({})).await?);
    }
    for name in [EMULATOR, SCRIPTED, RELAY] {
        stack.member(name)?.start()?;
    }
    check::settled(&stack, &Expected { committed, ..Expected::default() }).await?;
    assert_eq!(
        stack.count("select count(*) from backline.operation_history where outcome = 'succeeded'").await?,
        20
    );
    Ok(())
}

#[tokio::test]
async fn an_event_that_the_broker_lost_is_offered_again_with_the_same_identity() -> anyhow::Result<()> {
    let mut stack = Stack::builder().worker(SCRIPTED).start().await?;
    let organization = Uuid::now_v7();
    // The consumer is known, its subscription is gone when the event is published.
    stack.member(SCRIPTED)?.kill9()?;
    let path = "/v1/projects/backline-promises/subscriptions/domain-events.promises";
    http::must(stack.member(EMULATOR)?.address()?, "DELETE", path, &Value::Null)?;
    let id = stack.emit("ThingOrdered", organization, "a", ordered("a")).await?;
    eventually("the publication", async || {
        Ok(stack.count("select count(*) from backline.outbox_published").await? == 1)
    })
    .await?;
    stack.member(SCRIPTED)?.start()?;
    let operation: Uuid = sqlx::query_scalar("select backline.operation_id($1, 'effect.keyed', 'a')")
        .bind(organization)
        .fetch_one(stack.pool())
        .await?;
    stack.comes_to(operation, "succeeded").await?;
    assert_eq!(stack.effects().applied(operation), 1);
    check::settled(&stack, &Expected { committed: vec![id], ..Expected::recovered() }).await
}

#[tokio::test]
async fn a_delivery_that_no_build_reads_is_kept_raw_and_shown() -> anyhow::Result<()> {
    let mut stack = Stack::builder().worker(SCRIPTED).start().await?;
    let organization = Uuid::now_v7();
    let sql = "select backline.emit_event('ThingOrdered', $1, $1, 'order', 'a', '{\"key\": \"newer\"}', schema_version => 7)";
    let newer: Uuid = sqlx::query_scalar(sql).bind(organization).fetch_one(stack.pool()).await?;
    let malformed =
        stack.emit("ThingOrdered", organization, "b", json!({"canary-of-the-payload": 1})).await?;
    let healthy = stack.emit("ThingOrdered", organization, "c", ordered("c")).await?;
    eventually("both to be parked", async || {
        Ok(stack.count("select count(*) from backline.parked_delivery").await? == 2)
    })
    .await?;
    let states = "select string_agg(state, ' ' order by state) from backline.parked_delivery where reason <> '' and octet_length(data) > 0";
    let states: Option<String> = sqlx::query_scalar(states).fetch_one(stack.pool()).await?;
    assert_eq!(states.as_deref(), Some("poison waiting-for-capability"));
    assert!(
        (stack.metric(SCRIPTED, "backline_parked_entries")? - 2.0).abs() < 0.1,
        "and the metric shows them"
    );
    check::settled(&stack, &Expected { committed: vec![newer, malformed, healthy], ..Expected::default() })
        .await
}

#[tokio::test]
async fn a_delivery_that_comes_again_and_again_is_one_error_and_every_time_counted() -> anyhow::Result<()> {
    let mut stack = Stack::builder().worker(SCRIPTED).start().await?;
    let faults = json!({"duplicate": {"probability": 1.0, "copies": 3, "new_message_id": true}});
    stack.add_faults(EMULATOR, &faults)?;
    let id = stack.emit("ThingOrdered", Uuid::now_v7(), "a", json!({"unreadable": 1})).await?;
    eventually("every copy to be counted", async || {
        Ok(stack.metric(SCRIPTED, "backline_deliveries_parked_total")? >= 3.0)
    })
    .await?;
    let log = stack.member(SCRIPTED)?.log()?;
    let told = log.lines().filter(|line| line.contains("delivery parked") && line.contains(&id.to_string()));
    assert_eq!(told.count(), 1, "{log}");
    check::settled(&stack, &Expected { committed: vec![id], ..Expected::default() }).await
}

#[tokio::test]
async fn a_topic_that_is_missing_is_named_with_what_makes_it() -> anyhow::Result<()> {
    let mut stack = Stack::builder().start().await?;
    let sql = "select backline.emit_event('OrderPlaced', $1, $1, 'order', 'a', '{}', topic => 'orders')";
    let id: Uuid = sqlx::query_scalar(sql).bind(Uuid::now_v7()).fetch_one(stack.pool()).await?;
    eventually("the relay to say what to do", async || {
        let log = stack.member(RELAY)?.log()?;
        Ok(log.lines().any(|line| line.contains("orders") && line.contains("`backline topology apply`")))
    })
    .await?;
    let broker = stack.member(EMULATOR)?.address()?;
    http::must(broker, "PUT", "/v1/projects/backline-promises/topics/orders", &json!({}))?;
    check::settled(&stack, &Expected { committed: vec![id], ..Expected::default() }).await
}

#[tokio::test]
async fn an_operation_that_always_fails_ends_dead_with_its_reason_and_healthy_work_passes_it()
-> anyhow::Result<()> {
    let stack = Stack::builder().worker(SCRIPTED).start().await?;
    let organization = Uuid::now_v7();
    let mut stuck = Vec::new();
    for (n, act) in ["transient", "poison", "panic_before"].into_iter().enumerate() {
        let input = json!({"value": CANARY, "acts": [act]});
        stuck.push(stack.enqueue("effect.bare", organization, &n.to_string(), input).await?);
    }
    // Unreadable for the handler; and deeper than any parser should follow.
    stuck.push(stack.enqueue("effect.bare", organization, "shape", json!({"acts": "x"})).await?);
    let deep = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
    let sql = "select backline.enqueue_operation('effect.bare', $1, 'deep', jsonb_build_object('value', $2::text::jsonb))";
    stuck.push(sqlx::query_scalar(sql).bind(organization).bind(deep).fetch_one(stack.pool()).await?);
    let mut healthy = Vec::new();
    for n in 0..20 {
        healthy.push(stack.enqueue("effect.bare", organization, &format!("h{n}"), json!({})).await?);
    }
    for id in &healthy {
        stack.comes_to(*id, "succeeded").await?;
    }
    for id in &stuck {
        stack.comes_to(*id, "dead").await?;
    }
    let attempts = "select attempt::bigint from backline.operation where id = $1";
    assert_eq!(stack.number(attempts, stuck[0]).await?, 5, "as many as its policy allows");
    let expected = Expected { committed: healthy, stuck: 5, ..Expected::recovered() };
    check::settled(&stack, &expected).await
}

#[tokio::test]
async fn a_panic_in_a_read_or_a_guard_ends_the_attempt_and_is_shown() -> anyhow::Result<()> {
    // A lease that nobody could wait out: the attempt itself has to end.
    let plan = Stack::builder().worker(SCRIPTED).env(SCRIPTED, "BACKLINE_LEASE", "10min");
    let stack = plan.start().await?;
    let organization = Uuid::now_v7();
    sqlx::query("insert into app.desired values ('k', -1)").execute(stack.pool()).await?;
    let read = stack.enqueue("effect.desired", organization, "k", json!({})).await?;
    let guard = stack.enqueue("effect.guarded", organization, "k", json!({})).await?;
    for id in [read, guard] {
        stack.comes_to(id, "dead").await?;
        let shown = "select failure_class || ' ' || failure_code || ' ' || failure_detail || ' ' || attempt from backline.operation where id = $1";
        let shown: String = sqlx::query_scalar(shown).bind(id).fetch_one(stack.pool()).await?;
        assert_eq!(shown, "poison panicked in read or guard 1");
    }
    assert!(stack.effects().calls().is_empty(), "the provider was called");
    // The worker is sound, and so is the operation once its state can be read.
    sqlx::query("update app.desired set n = 1").execute(stack.pool()).await?;
    stack.enqueue("effect.desired", organization, "k", json!({})).await?;
    stack.comes_to(read, "succeeded").await?;
    check::settled(&stack, &Expected { committed: vec![read, guard], stuck: 1, ..Expected::default() }).await
}
