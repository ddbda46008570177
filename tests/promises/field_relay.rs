//! Field cases of the relay: late commits, poison, outages, and failures after the broker's confirmation.

use backline_promises::check::{self, Expected};
use backline_promises::{EMULATOR, RELAY, SCRIPTED, Stack, eventually, http};
use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};
use std::time::Instant;
use uuid::Uuid;

const WAITING: &str = "select count(*) from backline.outbox where parked_at is null";
const RECORDED: &str = "select count(*) from backline.outbox_published";

async fn emit_in(connection: &mut PgConnection, organization: Uuid, aggregate: &str) -> sqlx::Result<Uuid> {
    let sql = "select backline.emit_event('OrderPlaced', $1, $1, 'order', $2, '{}')";
    sqlx::query_scalar(sql).bind(organization).bind(aggregate).fetch_one(connection).await
}

/// Case 1: <https://github.com/kamu-data/kamu-cli/issues/1398>
#[tokio::test]
async fn an_entry_whose_transaction_commits_late_is_published_although_later_ones_went_first()
-> anyhow::Result<()> {
    let stack = Stack::builder().start().await?;
    let url = stack.database_url();
    let organization = Uuid::now_v7();
    let mut writers = Vec::new();
    for _ in 0..8 {
        writers.push(PgConnection::connect(&url).await?);
    }
    let mut committed = Vec::new();
    for round in 0..25 {
        for writer in &mut writers {
            sqlx::raw_sql("begin").execute(&mut *writer).await?;
            // One aggregate: one lane, one sequence.
            committed.push(emit_in(writer, organization, "a").await?);
        }
        // Ids were taken in one order and become visible in another; the relay drains between.
        for turn in 0..8 {
            let nth = (turn * 3 + round * 5 + 7) % 8;
            if let Some(writer) = writers.get_mut(nth) {
                sqlx::raw_sql("commit").execute(writer).await?;
            }
            if turn == 3 && round % 5 == 0 {
                let visible = i64::try_from(round * 8 + 4)?;
                eventually("what is visible", async || Ok(stack.count(RECORDED).await? == visible)).await?;
            }
        }
    }
    check::settled(&stack, &Expected { committed, ..Expected::default() }).await?;
    assert_eq!(stack.count(RECORDED).await?, 200);
    Ok(())
}

/// Case 3: <https://github.com/watt-mind/factory/issues/1479>
#[tokio::test]
async fn an_entry_that_cannot_be_encoded_is_parked_and_its_neighbors_go() -> anyhow::Result<()> {
    for batch in ["1", "2"] {
        let mut stack = Stack::builder().env(RELAY, "BACKLINE_RELAY_BATCH_ROWS", batch).start().await?;
        stack.member(RELAY)?.kill9()?;
        let organization = Uuid::now_v7();
        let poison = stack.emit("OrderPlaced", organization, "a", json!({})).await?;
        // More than the broker takes in one attribute, which no function of ours lets in.
        sqlx::raw_sql("update backline.outbox set aggregate_type = repeat('x', 2000)")
            .execute(stack.pool())
            .await?;
        let first = stack.emit("OrderPlaced", organization, "a", json!({})).await?;
        let second = stack.emit("OrderPlaced", organization, "a", json!({})).await?;
        stack.member(RELAY)?.start()?;
        let expected = Expected { committed: vec![poison, first, second], parked: 1, ..Expected::default() };
        check::settled(&stack, &expected).await?;
        let sql = "select id from backline.outbox where parked_reason <> ''";
        assert_eq!(sqlx::query_scalar::<_, Uuid>(sql).fetch_one(stack.pool()).await?, poison);
        assert_eq!(stack.metric(RELAY, "backline_outbox_parked_total")?, 1.0);
    }
    Ok(())
}

/// Cases 5 and 7: <https://github.com/zarusz/SlimMessageBus/pull/475>, <https://github.com/wework/grabbit/issues/203>
#[tokio::test]
async fn an_outage_is_probed_with_backoff_parks_nothing_and_ends_with_everything_sent() -> anyhow::Result<()>
{
    let mut stack = Stack::builder().start().await?;
    stack.add_faults(EMULATOR, &json!({"publish": [{"mode": "refuse", "code": "UNAVAILABLE"}]}))?;
    let organization = Uuid::now_v7();
    let mut committed = Vec::new();
    let begun = Instant::now();
    for n in 0..20 {
        committed.push(stack.emit("OrderPlaced", organization, &n.to_string(), json!({})).await?);
    }
    let broker = stack.member(EMULATOR)?.address()?;
    let refused = || -> anyhow::Result<u64> {
        let page: Value = serde_json::from_str(&http::must(broker, "GET", "/faults", &Value::Null)?)?;
        Ok(page["fired"]["publish_refused"].as_u64().unwrap_or(0))
    };
    eventually("several probes", async || Ok(refused()? >= 4)).await?;
    // 200 ms doubling: without a backoff the same time has thousands of calls. Lanes under way at the first refusal
    // may each add one.
    let (probes, elapsed) = (refused()?, begun.elapsed());
    assert!(probes <= 16 + elapsed.as_secs(), "{probes} calls in {elapsed:?}");
    assert_eq!(stack.count("select count(*) from backline.outbox where parked_at is not null").await?, 0);
    stack.clear_faults(EMULATOR)?;
    check::settled(&stack, &Expected { committed, ..Expected::recovered() }).await
}

/// Case 9: <https://github.com/InditexTech/scs-outbox/pull/94>
#[tokio::test]
async fn a_failed_record_of_a_confirmed_publication_costs_at_most_one_copy() -> anyhow::Result<()> {
    let mut stack = Stack::builder().worker(SCRIPTED).start().await?;
    // Sequences do not roll back: the first DELETE of an entry meets a lock timeout, the next does not.
    let sql = "create sequence app.once; create function app.fail_once() returns trigger language plpgsql as $$ begin
        if nextval('app.once') = 1 then raise exception 'lock timeout' using errcode = '55P03'; end if; return old; end $$;
        create trigger fail_once before delete on backline.outbox for each row execute function app.fail_once()";
    sqlx::raw_sql(sql).execute(stack.pool()).await?;
    let payload = json!({"key": "k", "order": {}});
    let id = stack.emit("ThingOrdered", Uuid::now_v7(), "a", payload).await?;
    check::settled(&stack, &Expected { committed: vec![id], ..Expected::default() }).await?;
    assert!(stack.count("select last_value from app.once").await? >= 2, "the record failed once");
    let copies =
        stack.published()?.iter().filter(|line| line["attributes"]["ce-id"] == id.to_string()).count();
    assert!(copies <= 2, "{copies} copies");
    assert_eq!(
        stack.metric(RELAY, "backline_outbox_republished_total")?,
        if copies == 2 { 1.0 } else { 0.0 }
    );
    assert_eq!(stack.effects().calls().len(), 1, "the consumer applied it once");
    Ok(())
}

/// Case 57: <https://github.com/googleapis/google-cloud-rust/issues/4015>
#[tokio::test]
async fn a_failed_ordering_key_resumes_in_order_and_others_are_not_touched() -> anyhow::Result<()> {
    let mut stack = Stack::builder().env(RELAY, "BACKLINE_RELAY_BATCH_ROWS", "1").start().await?;
    let organization = Uuid::now_v7();
    let sql = "select backline.lane_of($1, 'order', $2)::bigint";
    let mut lanes = Vec::new();
    for name in ["k0", "k1", "k2", "k3"] {
        lanes.push(
            sqlx::query_scalar::<_, i64>(sql).bind(organization).bind(name).fetch_one(stack.pool()).await?,
        );
    }
    let other = lanes.iter().position(|lane| *lane != lanes[0]).unwrap_or(1);
    let key = format!("lane-{:02}", lanes[0]);
    let faults =
        json!({"publish": [{"mode": "refuse", "code": "INTERNAL", "times": 1, "ordering_key": key}]});
    stack.member(RELAY)?.kill9()?;
    stack.add_faults(EMULATOR, &faults)?;
    let mut committed = Vec::new();
    for _ in 0..5 {
        committed.push(stack.emit("OrderPlaced", organization, "k0", json!({})).await?);
    }
    for _ in 0..5 {
        committed.push(stack.emit("OrderPlaced", organization, &format!("k{other}"), json!({})).await?);
    }
    stack.member(RELAY)?.start()?;
    check::settled(&stack, &Expected { committed: committed.clone(), ..Expected::default() }).await?;
    let sent: Vec<String> = stack
        .published()?
        .iter()
        .filter(|line| line["ordering_key"] == key)
        .filter_map(|line| line["attributes"]["ce-id"].as_str().map(str::to_owned))
        .collect();
    let wanted: Vec<String> = committed.iter().take(5).map(Uuid::to_string).collect();
    assert_eq!(sent, wanted, "from the failed event on, in order");
    assert_eq!(stack.count(WAITING).await?, 0);
    Ok(())
}

/// Case 59: <https://github.com/googleapis/java-pubsub/issues/2106>
#[tokio::test]
async fn batches_are_split_by_size_and_a_giant_is_parked_alone() -> anyhow::Result<()> {
    let mut stack = Stack::builder().start().await?;
    stack.member(RELAY)?.kill9()?;
    let organization = Uuid::now_v7();
    let mut committed = Vec::new();
    for n in 0..12 {
        committed.push(
            stack
                .emit("OrderPlaced", organization, "a", json!({"n": n, "text": "x".repeat(900_000)}))
                .await?,
        );
    }
    let refused = stack.emit("OrderPlaced", organization, "a", json!({"text": "x".repeat(10_500_000)})).await;
    assert!(
        refused.err().is_some_and(|error| error.to_string().contains("payload")),
        "refused by name, before it is written"
    );
    let giant = stack.emit("OrderPlaced", organization, "a", json!({})).await?;
    // As if it had come past our functions.
    sqlx::query("update backline.outbox set payload = to_jsonb(repeat('x', 10500000)) where id = $1")
        .bind(giant)
        .execute(stack.pool())
        .await?;
    committed.push(stack.emit("OrderPlaced", organization, "a", json!({"after": "the giant"})).await?);
    stack.member(RELAY)?.start()?;
    check::settled(&stack, &Expected { committed, parked: 1, ..Expected::default() }).await?;
    assert_eq!(stack.count(RECORDED).await?, 13);
    Ok(())
}
