//! `emit`: what one event costs a business transaction; `append_bulk`: what our function costs a bulk insert.

use super::bed::{Bed, begin, commit, organization, real};
use super::line::{Line, Runs, Target};
use super::plan::Plan;
use backline_envelope::Payload;
use backline_outbox::{Doorbell, NewEvent};
use serde_json::json;
use sqlx::postgres::PgConnection;
use std::time::Duration;
use tokio::time::Instant;
use uuid::Uuid;

const CLIENTS: usize = 8;
/// What an idle relay does between being rung and sleeping again: two reads and a publish take about this long.
const AWAKE: Duration = Duration::from_millis(20);
const BULK: i64 = 1000;

/// An event of about 400 bytes.
pub(super) fn event(number: i64) -> anyhow::Result<NewEvent> {
    let organization = organization(number);
    let body = json!({"seq": number, "tenant": "t-0042", "kind": "document.index", "blob": "0123456789abcdef".repeat(20)});
    Ok(NewEvent {
        id: None,
        event_type: "PaymentAuthorized".to_owned(),
        schema_version: 1,
        organization: Some(organization),
        project: Some(organization),
        aggregate_type: "payment".to_owned(),
        aggregate_id: number.to_string(),
        aggregate_version: None,
        correlation_id: None,
        causation_id: None,
        traceparent: None,
        tracestate: None,
        topic: None,
        payload: Payload::encode(&body)?,
    })
}

pub(super) async fn emit(bed: &Bed, plan: Plan, asleep: bool) -> anyhow::Result<Line> {
    let (mut ceiling, mut ours) = (Runs::default(), Runs::default());
    let time = Duration::from_secs(plan.seconds);
    for _ in 0..plan.runs {
        bed.reset().await?;
        bed.settle().await?;
        ceiling.push(business(bed, time, false).await?);
        bed.reset().await?;
        bed.settle().await?;
        let sleeper = asleep.then(|| tokio::spawn(sleep_and_wake(bed.clone())));
        ours.push(business(bed, time, true).await?);
        if let Some(sleeper) = sleeper {
            sleeper.abort();
        }
    }
    let name = if asleep { "emit_asleep" } else { "emit_awake" };
    let line = Line::against(name, "tx/s", &ours, &ceiling, Target::AtLeast(0.70));
    let how = if asleep {
        "8 clients; a listener sleeps, is rung, is awake for 20 ms and sleeps again"
    } else {
        "8 clients; nobody sleeps"
    };
    Ok(line.note(how).peers(6_224.0, "the transaction alone"))
}

/// Transactions per second: an insert, an update by key, and for `with_event` one event.
async fn business(bed: &Bed, time: Duration, with_event: bool) -> anyhow::Result<f64> {
    let mut connections = Vec::new();
    for _ in 0..CLIENTS {
        connections.push(bed.connection().await?);
    }
    let started = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for (client, mut connection) in connections.into_iter().enumerate() {
        tasks.spawn(async move {
            let (mut done, mut number) = (0_i64, i64::try_from(client)? * 10_000_000);
            while started.elapsed() < time {
                number += 1;
                transaction(&mut connection, number, with_event).await?;
                done += 1;
            }
            anyhow::Ok(done)
        });
    }
    let mut done = 0;
    while let Some(task) = tasks.join_next().await {
        done += task??;
    }
    Ok(real(done) / started.elapsed().as_secs_f64())
}

async fn transaction(connection: &mut PgConnection, number: i64, with_event: bool) -> anyhow::Result<()> {
    let row = 1 + rand::random_range(0..100_000_i64);
    begin(connection).await?;
    sqlx::query("insert into bench.biz (body) values (bench.payload($1))")
        .bind(number)
        .execute(&mut *connection)
        .await?;
    sqlx::query("update bench.biz set v = v + 1 where id = $1").bind(row).execute(&mut *connection).await?;
    if with_event {
        backline_outbox::append(connection, &event(number)?).await?;
    }
    commit(connection).await?;
    Ok(())
}

/// The doorbell as an idle relay uses it, without draining anything.
async fn sleep_and_wake(bed: Bed) -> anyhow::Result<()> {
    let bell = Doorbell::listen(&bed.pool, "backline_outbox");
    loop {
        bell.fall_asleep().await?;
        if bell.wait(Duration::from_secs(1)).await {
            bell.wake().await?;
            tokio::time::sleep(AWAKE).await;
        }
    }
}

pub(super) async fn append_bulk(bed: &Bed, plan: Plan) -> anyhow::Result<Line> {
    let (mut ceiling, mut ours) = (Runs::default(), Runs::default());
    for _ in 0..plan.runs {
        ceiling.push(bulk(bed, plan.rows, false).await?);
        ours.push(bulk(bed, plan.rows, true).await?);
    }
    let line = Line::against("append_bulk", "event/s", &ours, &ceiling, Target::AtLeast(0.70));
    let line = line.note("bare: UNNEST of ids, lanes and payloads that the client made, nothing checked");
    Ok(line.peers(81_934.0, "UNNEST from a Rust client"))
}

/// Events per second of one client with 1,000 a transaction.
async fn bulk(bed: &Bed, rows: i64, through_function: bool) -> anyhow::Result<f64> {
    bed.reset().await?;
    bed.settle().await?;
    let mut connection = bed.connection().await?;
    let mut number = 0;
    let mut taken = Duration::ZERO;
    while number < rows {
        let events = (number..number + BULK).map(event).collect::<anyhow::Result<Vec<_>>>()?;
        number += BULK;
        let started = Instant::now();
        begin(&mut connection).await?;
        if through_function {
            backline_outbox::append_all(&mut connection, &events).await?;
        } else {
            unnest(&mut connection, &events).await?;
        }
        commit(&mut connection).await?;
        taken += started.elapsed();
    }
    Ok(real(number) / taken.as_secs_f64())
}

async fn unnest(connection: &mut PgConnection, events: &[NewEvent]) -> anyhow::Result<()> {
    let lanes: Vec<i16> = events.iter().map(|_| rand::random_range(0..64)).collect();
    let ids: Vec<Uuid> = events.iter().map(|_| Uuid::now_v7()).collect();
    let organizations: Vec<Option<Uuid>> = events.iter().map(|event| event.organization).collect();
    let aggregates: Vec<&str> = events.iter().map(|event| event.aggregate_id.as_str()).collect();
    let payloads: Vec<&str> = events.iter().map(|event| event.payload.as_str()).collect();
    let insert = "insert into backline.outbox (lane, id, event_type, schema_version, organization, project, topic, \
        aggregate_type, aggregate_id, correlation_id, occurred_at, payload) \
        select lane, id, 'PaymentAuthorized', 1, o, o, 'domain-events', 'payment', a, id, now(), p::jsonb \
        from unnest($1::smallint[], $2::uuid[], $3::uuid[], $4::text[], $5::text[]) as e(lane, id, o, a, p)";
    let query = sqlx::query(insert).bind(&lanes).bind(&ids).bind(&organizations);
    query.bind(&aggregates).bind(&payloads).execute(connection).await?;
    Ok(())
}
