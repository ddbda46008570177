//! Field cases of claims: killed, stalled and slow holders, sweeps, and keys that several ask for at once.

use backline_promises::check::{self, CANARY, Expected};
use backline_promises::{Effects, Reply, SCRIPTED, Stack, Then, enqueue_in, eventually};
use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

const FENCED: &str = "select count(*) from backline.attempt_evidence where operation_id = $1 and fenced";

/// Two workers, the second not started.
async fn two() -> anyhow::Result<Stack> {
    Stack::builder().worker_as("first", SCRIPTED).later("second", SCRIPTED).start().await
}

/// The first call of an operation is held, every later one is applied.
fn hold_first(effects: &Effects) {
    effects.answer(|_, nth| if nth == 1 { Reply::Hold } else { Reply::Apply });
}

async fn arrived(stack: &Stack, calls: usize) -> anyhow::Result<()> {
    eventually("the calls to arrive", async || Ok(stack.effects().calls().len() == calls)).await
}

/// Case 15: <https://github.com/janbjorge/pgqueuer/issues/475>
#[tokio::test]
async fn an_operation_of_a_killed_worker_is_taken_over_with_a_higher_token_and_one_effect()
-> anyhow::Result<()> {
    let mut stack = two().await?;
    hold_first(stack.effects());
    let id = stack.enqueue("effect.keyed", Uuid::now_v7(), "k", json!({"value": CANARY})).await?;
    arrived(&stack, 1).await?;
    stack.member("first")?.kill9()?;
    stack.member("second")?.start()?;
    stack.comes_to(id, "succeeded").await?;
    // The request of the dead worker is applied after all, and meets its own key.
    stack.effects().release();
    let calls = stack.effects().calls_of(id);
    assert_eq!(calls.iter().map(|call| call.attempt).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(calls[0].key, calls[1].key);
    assert_eq!(stack.effects().applied(id), 1);
    check::settled(&stack, &Expected { committed: vec![id], ..Expected::recovered() }).await
}

/// Case 17: <https://github.com/oban-bg/oban/issues/1496>
#[tokio::test]
async fn every_kind_of_stale_settlement_is_refused_and_counted() -> anyhow::Result<()> {
    let mut stack = two().await?;
    let stale = [
        ("complete", "effect.bare", Reply::Hold),
        ("error", "effect.bare", Reply::HoldThen(Then::InUse)),
        ("snooze", "effect.keyed", Reply::HoldThen(Then::SlowDown)),
        ("discard", "effect.keyed", Reply::HoldThen(Then::Refuse)),
        ("unknown", "effect.keyed", Reply::HoldThen(Then::LostBefore)),
    ];
    stack.effects().answer(move |call, nth| {
        let told = stale.iter().find(|(name, ..)| call.value == *name);
        told.filter(|_| nth == 1).map_or(Reply::Apply, |(.., reply)| *reply)
    });
    let mut ids = Vec::new();
    for (name, kind, _) in stale {
        let input = json!({"value": name, "acts": ["patient"]});
        ids.push(stack.enqueue(kind, Uuid::now_v7(), name, input).await?);
    }
    arrived(&stack, stale.len()).await?;
    stack.member("first")?.pause()?;
    stack.member("second")?.start()?;
    for id in &ids {
        stack.comes_to(*id, "succeeded").await?;
    }
    stack.effects().release();
    stack.member("first")?.resume()?;
    eventually("five refused writes", async || {
        Ok(stack.metric("first", "backline_stale_writes_refused_total")? >= 5.0)
    })
    .await?;
    for id in ids {
        assert_eq!(stack.state(id).await?, "succeeded");
        assert_eq!(stack.number(FENCED, id).await?, 1);
        assert_eq!(stack.effects().applied(id), 1);
    }
    check::settled(&stack, &Expected { recoveries: 5, ..Expected::default() }).await
}

/// Case 19: <https://github.com/riverqueue/river/pull/1318>
#[tokio::test]
async fn an_orphan_behind_many_leases_that_need_no_rescue_is_found() -> anyhow::Result<()> {
    let mut stack = two().await?;
    hold_first(stack.effects());
    let id = stack.enqueue("effect.bare", Uuid::now_v7(), "k", json!({})).await?;
    arrived(&stack, 1).await?;
    stack.member("first")?.kill9()?;
    // Older rows in every order the sweep may page by: leases that never end, and empty ones that ended long ago.
    sqlx::query("insert into backline.lease (process, owner, until) select gen_random_uuid(), 'elsewhere', t from generate_series(1, 300), (values (timestamptz 'infinity'), ('-infinity')) v(t)")
        .execute(stack.pool())
        .await?;
    stack.member("second")?.start()?;
    stack.comes_to(id, "succeeded").await?;
    stack.effects().release();
    let left = stack.count("select count(*) from backline.lease where until = 'infinity'").await?;
    assert_eq!(left, 300, "leases that did not end are nobody's to take");
    sqlx::query("delete from backline.lease where owner = 'elsewhere'").execute(stack.pool()).await?;
    check::settled(&stack, &Expected::recovered()).await
}

/// Case 21: <https://github.com/hexpm/hexpm/pull/1825>
#[tokio::test]
async fn a_long_attempt_with_healthy_renewals_runs_once_and_without_them_is_fenced() -> anyhow::Result<()> {
    let short =
        [("BACKLINE_LEASE", "1s"), ("PROMISE_TIMEOUT", "300ms"), ("BACKLINE_ACQUIRE_TIMEOUT", "500ms")];
    let mut plan = Stack::builder().worker_as("first", SCRIPTED).worker_as("second", SCRIPTED);
    for (name, value) in short {
        plan = plan.env("first", name, value).env("second", name, value);
    }
    let mut stack = plan.start().await?;
    hold_first(stack.effects());
    let input = json!({"acts": ["patient"]});
    let id = stack.enqueue("effect.keyed", Uuid::now_v7(), "long", input.clone()).await?;
    arrived(&stack, 1).await?;
    // Five leases long, by the database's clock.
    let begun: String = sqlx::query_scalar("select clock_timestamp()::text").fetch_one(stack.pool()).await?;
    eventually("five leases to pass", async || {
        let sql = "select count(*) from backline.lease where until > $1::timestamptz + interval '6 s'";
        Ok(sqlx::query_scalar::<_, i64>(sql).bind(&begun).fetch_one(stack.pool()).await? == 1)
    })
    .await?;
    assert_eq!(stack.effects().calls_of(id).len(), 1, "nobody else took it while it was renewed");
    stack.effects().release();
    stack.comes_to(id, "succeeded").await?;
    assert_eq!(stack.effects().calls_of(id).len(), 1);

    // Without renewals: whoever holds it stands still.
    let id = stack.enqueue("effect.keyed", Uuid::now_v7(), "cut", input).await?;
    arrived(&stack, 2).await?;
    let sql =
        "select l.owner from backline.operation o join backline.lease l on l.id = o.lease_id where o.id = $1";
    let owner: String = sqlx::query_scalar(sql).bind(id).fetch_one(stack.pool()).await?;
    let (mut holder, mut until) = ("second", String::new());
    let pid = stack.member("first")?.process()?.pid();
    if owner.ends_with(&format!(":{pid}")) {
        holder = "first";
    }
    stack.member(holder)?.pause()?;
    until.push_str(
        &sqlx::query_scalar::<_, String>("select max(until)::text from backline.lease")
            .fetch_one(stack.pool())
            .await?,
    );
    stack.comes_to(id, "succeeded").await?;
    let sql = "select count(*) from app.token_log where operation = $1 and at < $2::timestamptz";
    let early: i64 = sqlx::query_scalar(sql).bind(id).bind(&until).fetch_one(stack.pool()).await?;
    assert_eq!(early, 1, "the second attempt began only after the first one's lease was over");
    stack.effects().release();
    stack.member(holder)?.resume()?;
    eventually("the refused write", async || Ok(stack.number(FENCED, id).await? == 1)).await?;
    check::settled(&stack, &Expected::recovered()).await
}

/// Case 23: <https://github.com/windmill-labs/windmill/pull/8333>
#[tokio::test]
async fn a_pool_that_waits_for_a_lock_recovers_without_restart_and_without_spent_attempts()
-> anyhow::Result<()> {
    let plan = Stack::builder().worker(SCRIPTED).env(SCRIPTED, "BACKLINE_CONNECTIONS", "2");
    let mut stack = plan.env(SCRIPTED, "BACKLINE_ACQUIRE_TIMEOUT", "500ms").start().await?;
    let mut blocker = stack.pool().acquire().await?;
    sqlx::raw_sql("begin; lock table app.done in access exclusive mode").execute(&mut *blocker).await?;
    let mut ids = Vec::new();
    for n in 0..20 {
        ids.push(stack.enqueue("effect.keyed", Uuid::now_v7(), &n.to_string(), json!({})).await?);
    }
    // Every record waits for the table; acquiring fails within its bound, which the log shows.
    eventually("an acquire that failed in time", async || {
        Ok(stack.member(SCRIPTED)?.log()?.contains("pool timed out"))
    })
    .await?;
    sqlx::raw_sql("rollback").execute(&mut *blocker).await?;
    for id in &ids {
        stack.comes_to(*id, "succeeded").await?;
        assert_eq!(
            stack.number("select attempt::bigint from backline.operation_history where id = $1", *id).await?,
            1
        );
    }
    check::settled(&stack, &Expected { committed: ids, ..Expected::default() }).await
}

/// Case 25: <https://github.com/oban-bg/oban/issues/1087>
#[tokio::test]
async fn a_request_whose_rival_rolls_back_is_not_lost() -> anyhow::Result<()> {
    let stack = Stack::builder().worker(SCRIPTED).start().await?;
    let organization = Uuid::now_v7();
    let mut rival = stack.pool().acquire().await?;
    let rival = &mut *rival;
    // As a producer: both ask for K, one takes it back.
    sqlx::raw_sql("begin").execute(&mut *rival).await?;
    enqueue_in(rival, "effect.bare", organization, "K", &json!({})).await?;
    let id = stack.enqueue("effect.bare", organization, "K", json!({})).await?;
    sqlx::raw_sql("rollback").execute(&mut *rival).await?;
    stack.comes_to(id, "succeeded").await?;

    // As a runtime: the identity is being accepted by a transaction that rolls back.
    sqlx::raw_sql("begin").execute(&mut *rival).await?;
    let sql = "insert into backline.operation_identity (id, kind) select backline.operation_id($1, 'effect.bare', 'L'), 'effect.bare'";
    sqlx::query(sql).bind(organization).execute(&mut *rival).await?;
    let second = stack.enqueue("effect.bare", organization, "L", json!({})).await?;
    let waiting = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    eventually("the acceptance to wait for the rival", async || Ok(stack.count(waiting).await? > 0)).await?;
    sqlx::raw_sql("rollback").execute(&mut *rival).await?;
    stack.comes_to(second, "succeeded").await?;
    assert_eq!(stack.count("select count(*) from backline.operation_history").await?, 2);
    check::settled(&stack, &Expected { committed: vec![id, second], ..Expected::default() }).await
}

/// Case 27: <https://github.com/graphile/worker/issues/580>
#[tokio::test]
async fn the_last_request_for_a_key_is_handled_under_contention() -> anyhow::Result<()> {
    const KEYS: usize = 10;
    const PRODUCERS: usize = 4;
    const EACH: usize = 30;
    let stack = Stack::builder().worker_as("first", SCRIPTED).worker_as("second", SCRIPTED).start().await?;
    let organization = Uuid::now_v7();
    let url = stack.database_url();
    let producing: Vec<_> = (0..PRODUCERS)
        .map(|producer| tokio::spawn(produce(url.clone(), organization, producer, EACH, KEYS)))
        .collect();
    for producer in producing {
        assert_eq!(producer.await??, EACH, "every call returned an id");
    }
    check::settled(&stack, &Expected::default()).await?;
    for key in 0..KEYS {
        let key = format!("k{key}");
        let sql = "select n from app.desired where key = $1";
        let wanted: i64 = sqlx::query_scalar(sql).bind(&key).fetch_one(stack.pool()).await?;
        assert_eq!(stack.effects().desired(&key), Some(wanted), "{key}");
    }
    let asked = stack.count("select sum(last_generation)::bigint from backline.operation_identity").await?;
    assert_eq!(asked, i64::try_from(PRODUCERS * EACH)?, "every request is a generation");
    Ok(())
}

async fn produce(
    url: String,
    organization: Uuid,
    producer: usize,
    each: usize,
    keys: usize,
) -> anyhow::Result<usize> {
    let mut connection = PgConnection::connect(&url).await?;
    let mut ids = 0;
    for n in 0..each {
        let key = format!("k{}", (n + producer) % keys);
        sqlx::raw_sql("begin").execute(&mut connection).await?;
        sqlx::query(
            "insert into app.desired values ($1, 1) on conflict (key) do update set n = app.desired.n + 1",
        )
        .bind(&key)
        .execute(&mut connection)
        .await?;
        enqueue_in(&mut connection, "effect.desired", organization, &key, &json!({})).await?;
        sqlx::raw_sql("commit").execute(&mut connection).await?;
        ids += 1;
    }
    Ok(ids)
}

/// Case 45: <https://github.com/timescale/promscale/issues/1091>
#[tokio::test]
async fn keys_of_any_length_never_roll_the_business_write_back() -> anyhow::Result<()> {
    let stack = Stack::builder().worker(SCRIPTED).start().await?;
    let organization = Uuid::now_v7();
    // Text that no compression shortens.
    let random: String =
        sqlx::query_scalar("select string_agg(md5(random()::text), '') from generate_series(1, 128)")
            .fetch_one(stack.pool())
            .await?;
    let keys = [random, "a".repeat(255), "b".repeat(256), "\u{1f600}".repeat(1000)];
    let mut ids = Vec::new();
    for (n, key) in keys.iter().enumerate() {
        let mut connection = stack.pool().acquire().await?;
        sqlx::raw_sql("begin").execute(&mut *connection).await?;
        sqlx::query("insert into app.orders values ($1, 'paid')")
            .bind(n.to_string())
            .execute(&mut *connection)
            .await?;
        let sql = "select backline.enqueue_operation('effect.serial', $1, $2, '{}', serial_key => $2)";
        ids.push(sqlx::query_scalar(sql).bind(organization).bind(key).fetch_one(&mut *connection).await?);
        sqlx::raw_sql("commit").execute(&mut *connection).await?;
        let payload = json!({"key": key, "order": {}});
        stack.emit("ThingOrdered", organization, &n.to_string(), payload).await?;
    }
    check::settled(&stack, &Expected { committed: ids, ..Expected::default() }).await?;
    assert_eq!(stack.count("select count(*) from app.orders").await?, 4);
    assert_eq!(
        stack.count("select count(*) from backline.operation_history where outcome = 'succeeded'").await?,
        8
    );
    assert!(stack.effects().calls().iter().all(|call| call.key.len() <= 255), "the provider's limit");
    Ok(())
}

/// Case 39: <https://github.com/appstrate/appstrate/issues/1340>
#[tokio::test]
async fn texts_that_grow_when_encoded_do_not_abort_the_insert_that_rings_the_bell() -> anyhow::Result<()> {
    let stack = Stack::builder().worker(SCRIPTED).start().await?;
    eventually("relay and worker to sleep", async || {
        Ok(stack
            .count(
                "select count(distinct channel) from backline.sleeper where asleep_until > clock_timestamp()",
            )
            .await?
            == 2)
    })
    .await?;
    let organization = Uuid::now_v7();
    for (n, text) in ["\u{1f600}".repeat(2000), "\u{1}".repeat(8000)].iter().enumerate() {
        let key = format!("{n}{text}");
        stack.emit("ThingOrdered", organization, "a", json!({"key": key, "order": {"value": text}})).await?;
        stack.enqueue("effect.bare", organization, &key, json!({"value": text})).await?;
    }
    check::settled(&stack, &Expected::default()).await?;
    assert_eq!(
        stack.count("select count(*) from backline.operation_history where outcome = 'succeeded'").await?,
        4
    );
    Ok(())
}

/// Case 41: <https://github.com/formbricks/formbricks/pull/9123>
#[tokio::test]
async fn an_older_build_leaves_alone_what_it_does_not_know() -> anyhow::Result<()> {
    let plan = Stack::builder().worker_as("old", SCRIPTED).later("new", SCRIPTED);
    let plan = plan.env("new", "PROMISE_SPARE", "true").env("new", "PROMISE_VERSION", "2");
    let mut stack = plan.start().await?;
    let organization = Uuid::now_v7();
    let spare = stack.enqueue("effect.spare", organization, "kind", json!({})).await?;
    let sql = "select backline.enqueue_operation('effect.bare', $1, 'version', '{}', input_version => 2)";
    let version: Uuid = sqlx::query_scalar(sql).bind(organization).fetch_one(stack.pool()).await?;
    // Work behind both is done: the old build has looked at everything.
    let known = stack.enqueue("effect.bare", organization, "known", json!({})).await?;
    stack.comes_to(known, "succeeded").await?;
    for id in [spare, version] {
        assert_eq!(stack.state(id).await?, "requested");
        let sql = "select count(*) from backline.operation_status($1) where waiting_for = 'capability'";
        assert_eq!(stack.number(sql, id).await?, 1, "and says what it waits for");
    }
    assert_eq!(stack.count("select count(*) from backline.v_requested where waits_for_capability").await?, 2);

    stack.member("new")?.start()?;
    for id in [spare, version] {
        stack.comes_to(id, "succeeded").await?;
        let sql = "select attempt::bigint from backline.operation_history where id = $1";
        assert_eq!(stack.number(sql, id).await?, 1, "the old build has spent no attempt");
    }
    check::settled(&stack, &Expected { committed: vec![spare, version, known], ..Expected::default() }).await
}

/// A null where nobody expects one is refused before anything is written, by name.
#[tokio::test]
async fn a_request_that_cannot_be_kept_is_refused_by_name() -> anyhow::Result<()> {
    let stack = Stack::builder().without_relay().start().await?;
    let refused = stack.enqueue("effect.bare", Uuid::now_v7(), "", Value::Null).await;
    let text = refused.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(text.contains("operation_key"), "{text}");
    assert_eq!(stack.count("select count(*) from backline.intake").await?, 0);
    Ok(())
}
