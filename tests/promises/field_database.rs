//! Field cases of the database and the network before it: half-open sockets, servers that turn read-only, failover,
//! deadlocks, and outages at the worst moment.

use backline_outbox::run_tx;
use backline_promises::check::{self, Expected};
use backline_promises::{Reply, SCRIPTED, Stack, Then, enqueue_in, eventually};
use serde_json::json;
use sqlx::{Connection, PgConnection, PgPool};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Case 35: <https://github.com/timgit/pg-boss/pull/851>
#[tokio::test]
async fn a_listener_whose_socket_is_half_open_is_replaced_and_polling_bridges_the_gap() -> anyhow::Result<()>
{
    let plan = Stack::builder().behind_proxy().worker(SCRIPTED).env(SCRIPTED, "BACKLINE_POLL", "4s");
    let mut stack = plan.start().await?;
    let asleep = "select count(*) from backline.sleeper where channel = 'backline_intake' and asleep_until > clock_timestamp()";
    eventually("the worker to sleep", async || Ok(stack.count(asleep).await? == 1)).await?;
    stack.proxy()?.mute_sessions_that_ran("LISTEN");
    eventually("the listening sockets to be half open", async || Ok(stack.proxy()?.muted() >= 1)).await?;
    let id = stack.enqueue("effect.bare", Uuid::now_v7(), "during", json!({})).await?;
    stack.comes_to(id, "succeeded").await?;
    let begun = Instant::now();
    eventually("the listener to be replaced", async || {
        Ok(stack.metric(SCRIPTED, "backline_doorbell_replaced_total")? >= 1.0)
    })
    .await?;
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    stack.proxy()?.heal();
    // Only a worker that listens declares sleep, for ten seconds; a declaration from before the replacement rings nowhere.
    let now = "select (extract(epoch from clock_timestamp()) * 1000)::bigint";
    let replaced = stack.count(now).await?;
    // By the bell again, well before the poll: three in a row are no coincidence.
    for n in 0..3 {
        let fresh = "select count(*) from backline.sleeper where channel = 'backline_intake'
            and extract(epoch from asleep_until - interval '10 s') * 1000 > $1";
        eventually("the worker to listen and sleep", async || {
            let query = sqlx::query_scalar::<_, i64>(fresh).bind(replaced);
            Ok(query.fetch_one(stack.pool()).await? == 1)
        })
        .await?;
        let begun = Instant::now();
        let id = stack.enqueue("effect.bare", Uuid::now_v7(), &format!("after{n}"), json!({})).await?;
        stack.comes_to(id, "succeeded").await?;
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    }
    check::settled(&stack, &Expected::default()).await
}

/// Case 43, the injected half: <https://github.com/latitude-dev/latitude-llm/pull/3463>
#[tokio::test]
async fn a_deadlock_repeats_the_whole_transaction_and_spends_nothing() -> anyhow::Result<()> {
    let mut stack = Stack::builder().worker(SCRIPTED).start().await?;
    let sql = "create sequence app.failures; create function app.fail() returns trigger language plpgsql as $$ declare n bigint := nextval('app.failures'); begin
        if n = 1 then raise exception 'deadlock' using errcode = '40P01'; elsif n = 3 then raise exception 'serialization' using errcode = '40001'; end if; return new; end $$;
        create trigger fail before insert on backline.operation_history for each row execute function app.fail()";
    sqlx::raw_sql(sql).execute(stack.pool()).await?;
    let id = stack.enqueue("effect.parent", Uuid::now_v7(), "k", json!({"children": 4})).await?;
    stack.comes_to(id, "succeeded").await?;
    check::settled(&stack, &Expected { committed: vec![id], ..Expected::recovered() }).await?;
    assert!(stack.metric(SCRIPTED, "backline_tx_retries_total")? >= 2.0);
    assert_eq!(stack.effects().calls().len(), 5);
    Ok(())
}

/// Case 43, the natural half: two producers ask for the same operations in opposite order, and two workers accept them.
#[tokio::test]
async fn overlapping_requests_in_opposite_order_never_deadlock() -> anyhow::Result<()> {
    const ROUNDS: usize = 200;
    const KEYS: usize = 10;
    let plan = Stack::builder().worker_as("first", SCRIPTED).worker_as("second", SCRIPTED);
    let stack = plan.start().await?;
    let organization = Uuid::now_v7();
    let ask = async |round: usize, backwards: bool| {
        run_tx!(stack.pool(), "test.overlap", |tx| async {
            let mut ids = Vec::with_capacity(KEYS);
            for n in 0..KEYS {
                let n = if backwards { KEYS - 1 - n } else { n };
                let key = format!("{round}-{n}");
                ids.push(enqueue_in(tx, "effect.bare", organization, &key, &json!({})).await?);
            }
            Ok::<_, sqlx::Error>(ids)
        })
    };
    let mut committed = Vec::new();
    for round in 0..ROUNDS {
        let (forwards, backwards) = tokio::try_join!(ask(round, false), ask(round, true))?;
        assert_eq!(forwards, backwards.into_iter().rev().collect::<Vec<_>>());
        committed.extend(forwards);
    }
    check::settled(&stack, &Expected { committed, ..Expected::default() }).await?;
    assert_eq!(stack.effects().calls().len(), ROUNDS * KEYS);
    let deadlocks = "select deadlocks from pg_stat_database where datname = current_database()";
    assert_eq!(stack.count(deadlocks).await?, 0);
    Ok(())
}

/// Case 47: <https://github.com/goldsky-io/streamling/pull/65>
#[tokio::test]
async fn a_server_that_was_read_only_is_used_again_without_restart_or_spent_attempts() -> anyhow::Result<()> {
    let mut stack = Stack::builder().own_server().worker(SCRIPTED).start().await?;
    let mut writer = PgConnection::connect(&stack.database_url()).await?;
    sqlx::raw_sql("set default_transaction_read_only = off").execute(&mut writer).await?;
    stack.server().cluster()?.set("default_transaction_read_only", "on")?;
    eventually("the setting to be in force", async || {
        let setting: String =
            sqlx::query_scalar("show default_transaction_read_only").fetch_one(stack.pool()).await?;
        Ok(setting == "on")
    })
    .await?;
    let organization = Uuid::now_v7();
    let id = enqueue_in(&mut writer, "effect.keyed", organization, "k", &json!({})).await?;
    eventually("the refusal to be seen", async || {
        Ok(stack.member(SCRIPTED)?.log()?.contains("read-only transaction"))
    })
    .await?;
    assert_eq!(stack.state(id).await?, "requested");
    stack.server().cluster()?.set("default_transaction_read_only", "off")?;
    let begun = Instant::now();
    stack.comes_to(id, "succeeded").await?;
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert_eq!(
        stack.number("select attempt::bigint from backline.operation_history where id = $1", id).await?,
        1
    );
    check::settled(&stack, &Expected { committed: vec![id], ..Expected::recovered() }).await
}

/// Case 47, a real promotion: what may have been presented is looked up before anything is claimed.
#[tokio::test]
async fn after_a_promotion_work_goes_on_and_what_was_under_way_is_looked_up() -> anyhow::Result<()> {
    let mut stack = Stack::builder().own_server().behind_proxy().worker(SCRIPTED).start().await?;
    let standby = stack.server().cluster()?.standby()?;
    stack.effects().answer(|_, nth| if nth == 1 { Reply::Hold } else { Reply::Apply });
    let organization = Uuid::now_v7();
    let id = stack.enqueue("effect.keyed", organization, "under way", json!({"acts": ["patient"]})).await?;
    eventually("the request", async || Ok(stack.effects().calls_of(id).len() == 1)).await?;
    standby.wait_caught_up(stack.server().cluster()?)?;
    let name: String = sqlx::query_scalar("select current_database()").fetch_one(stack.pool()).await?;
    stack.server().cluster()?.kill9()?;
    standby.promote()?;
    stack.proxy()?.lead_to(standby.port());
    stack.effects().release();
    let pool = PgPool::connect(&standby.url(&name)).await?;
    let outcome =
        "select count(*) from backline.operation_history where operation_key = $1 and outcome = 'succeeded'";
    eventually("the operation under way", async || {
        Ok(sqlx::query_scalar::<_, i64>(outcome).bind("under way").fetch_one(&pool).await? == 1)
    })
    .await?;
    assert_eq!(stack.effects().applied(id), 1);
    let mut connection = pool.acquire().await?;
    enqueue_in(&mut connection, "effect.keyed", organization, "after", &json!({})).await?;
    eventually("new work", async || {
        Ok(sqlx::query_scalar::<_, i64>(outcome).bind("after").fetch_one(&pool).await? == 1)
    })
    .await?;
    let adopted = "select count(*) from backline.incarnation i, backline.current_incarnation() c where i.timeline = c.timeline";
    assert_eq!(sqlx::query_scalar::<_, i64>(adopted).fetch_one(&pool).await?, 1);
    assert!(stack.member(SCRIPTED)?.log()?.contains("another incarnation"));
    Ok(())
}

/// Case 49, first half: <https://github.com/margince/margince/issues/1257>
#[tokio::test]
async fn an_outage_right_after_the_last_attempt_leaves_the_operation_somewhere() -> anyhow::Result<()> {
    let plan = Stack::builder().behind_proxy().worker(SCRIPTED).env(SCRIPTED, "PROMISE_ATTEMPTS", "2");
    let mut stack = plan.start().await?;
    stack.effects().answer(|_, nth| match nth {
        1 => Reply::InUse,
        2 => Reply::HoldThen(Then::InUse),
        _ => Reply::Apply,
    });
    let id = stack.enqueue("effect.keyed", Uuid::now_v7(), "k", json!({"acts": ["patient"]})).await?;
    eventually("the last attempt", async || Ok(stack.effects().calls_of(id).len() == 2)).await?;
    stack.proxy()?.unplug();
    stack.effects().release();
    eventually("the end that cannot be written", async || {
        Ok(stack.member(SCRIPTED)?.log()?.contains("not written yet"))
    })
    .await?;
    stack.proxy()?.heal();
    let mut state = String::new();
    eventually("an end", async || {
        state = stack.state(id).await?;
        Ok(["dead", "succeeded", "manual"].contains(&state.as_str()))
    })
    .await?;
    let stuck = i64::from(state != "succeeded");
    check::settled(&stack, &Expected { committed: vec![id], stuck, ..Expected::recovered() }).await
}
