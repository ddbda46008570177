//! G1, and H1: a committed mutation and its intent are atomic.
//!
//! Predicate: for every transaction, the business row exists exactly if its event and its operation exist, at every
//! moment, whatever happens to the producer, its connection or the server; and what exists is carried out once.
//!
//! The races: a rollback, a producer whose session is killed before COMMIT, a server that dies with transactions open,
//! and a COMMIT whose reply is lost, which the producer repeats with the same ids.

use backline_promises::check::{self, Expected};
use backline_promises::{SCRIPTED, Stack, eventually};
use serde_json::json;
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

/// Business row, event and operation of one order, left in an open transaction.
async fn order(connection: &mut PgConnection, organization: Uuid, name: &str) -> sqlx::Result<[Uuid; 2]> {
    sqlx::raw_sql("begin").execute(&mut *connection).await?;
    // Its own repetition is told by the row's key.
    sqlx::query("insert into app.orders values ($1, 'paid') on conflict do nothing")
        .bind(name)
        .execute(&mut *connection)
        .await?;
    let sql = "select backline.emit_event('ThingOrdered', $1, $1, 'order', $2, $3)";
    let payload = json!({"key": format!("event-{name}"), "order": {}});
    let event = sqlx::query_scalar(sql)
        .bind(organization)
        .bind(name)
        .bind(payload)
        .fetch_one(&mut *connection)
        .await?;
    let operation =
        backline_promises::enqueue_in(connection, "effect.bare", organization, name, &json!({})).await?;
    Ok([event, operation])
}

const HALF: &str = "select count(*) from app.orders o full join (select * from backline.operation_history where kind = 'effect.bare') h
    on h.operation_key = o.id where o.id is null or h.id is null";

#[tokio::test]
async fn state_and_intent_survive_together_or_not_at_all() -> anyhow::Result<()> {
    let mut stack = Stack::builder().own_server().worker(SCRIPTED).start().await?;
    let organization = Uuid::now_v7();
    let url = stack.database_url();
    let (mut committed, mut rolled_back) = (Vec::new(), Vec::new());

    let mut connection = PgConnection::connect(&url).await?;
    for n in 0..6 {
        let ids = order(&mut connection, organization, &format!("o{n}")).await?;
        let (end, list) =
            if n % 2 == 0 { ("commit", &mut committed) } else { ("rollback", &mut rolled_back) };
        sqlx::raw_sql(end).execute(&mut connection).await?;
        list.extend(ids);
    }
    // A producer that dies between its statements and its COMMIT.
    let mut dying = PgConnection::connect(&url).await?;
    rolled_back.extend(order(&mut dying, organization, "dying").await?);
    let pid: i32 = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut dying).await?;
    sqlx::query("select pg_terminate_backend($1)").bind(pid).execute(&mut connection).await?;
    drop(dying);
    // A server that dies with one transaction open and one committed.
    let mut open = PgConnection::connect(&url).await?;
    rolled_back.extend(order(&mut open, organization, "open").await?);
    let ids = order(&mut connection, organization, "last").await?;
    sqlx::raw_sql("commit").execute(&mut connection).await?;
    committed.extend(ids);
    stack.server().cluster()?.kill9()?;
    stack.server().cluster()?.start_again()?;

    eventually("every committed operation", async || {
        let sql = "select count(*) from backline.operation_history where kind = 'effect.bare'";
        Ok(stack.count(sql).await.is_ok_and(|done| done == 4))
    })
    .await?;
    assert_eq!(stack.count(HALF).await?, 0, "an order without its operation, or the reverse");
    assert_eq!(stack.count("select count(*) from app.orders").await?, 4);
    check::settled(&stack, &Expected { committed, rolled_back, ..Expected::default() }).await
}

#[tokio::test]
async fn a_commit_whose_reply_is_lost_is_repeated_into_one_intent() -> anyhow::Result<()> {
    let stack = Stack::builder().behind_proxy().worker(SCRIPTED).start().await?;
    let organization = Uuid::now_v7();
    let url = stack.proxied_url()?;
    let event_id: Uuid = sqlx::query_scalar("select backline.uuid7()").fetch_one(stack.pool()).await?;
    let mut attempts = 0;
    let operation = loop {
        attempts += 1;
        let mut connection = PgConnection::connect(&url).await?;
        if attempts == 1 {
            stack.proxy()?.swallow_commit_of("app.orders");
        }
        sqlx::raw_sql("begin").execute(&mut connection).await?;
        let mine = sqlx::query("insert into app.orders values ('o', 'paid') on conflict do nothing")
            .execute(&mut connection)
            .await?;
        // The producer's own key tells the repetition that the first run was committed.
        if mine.rows_affected() == 1 {
            let sql = "select backline.emit_event('ThingOrdered', $1, $1, 'order', 'o', $2, event_id => $3)";
            let payload = json!({"key": "event-o", "order": {}});
            sqlx::query(sql).bind(organization).bind(payload).bind(event_id).execute(&mut connection).await?;
        }
        // Asking for an operation twice is asking once, so it needs no such care.
        let id = backline_promises::enqueue_in(&mut connection, "effect.bare", organization, "o", &json!({}))
            .await?;
        if sqlx::raw_sql("commit").execute(&mut connection).await.is_ok() {
            break id;
        }
    };
    assert_eq!((attempts, stack.proxy()?.swallowed()), (2, 1), "the reply was lost once");
    let expected = Expected { committed: vec![event_id, operation], ..Expected::default() };
    check::settled(&stack, &expected).await?;
    assert_eq!(
        stack
            .count("select count(*) from backline.outbox_published where event_type = 'ThingOrdered'")
            .await?,
        1
    );
    assert_eq!(stack.count("select count(*) from backline.operation_history").await?, 2);
    Ok(())
}
