//! Atomic intent and named refusals (obligations D1, D5, I24, I25).

use anyhow::{Context, Result};
use backline_envelope::{Event, Payload};
use backline_outbox::{AppendError, NewEvent, NewOperation, append, append_all, enqueue, run_tx};
use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use std::time::Duration;
use uuid::Uuid;

#[derive(Serialize, Deserialize)]
struct InvoiceIssued {
    amount: i64,
}

impl Event for InvoiceIssued {
    const TYPE: &'static str = "InvoiceIssued";
    const VERSION: i32 = 2;
}

fn issued(aggregate: &str) -> Result<NewEvent> {
    Ok(NewEvent::new(&InvoiceIssued { amount: 9_007_199_254_740_993 }, ids(1), ids(2), "invoice", aggregate)?)
}

fn ids(n: u128) -> Uuid {
    Uuid::from_u128(n)
}

async fn waiting(pool: &PgPool) -> Result<i64> {
    Ok(sqlx::query_scalar("select count(*) from backline.outbox").fetch_one(pool).await?)
}

/// Runs one append in a transaction of its own and returns the refusal's text.
async fn refusal(pool: &PgPool, event: NewEvent) -> Result<String> {
    let result = run_tx!(pool, "test.refused", |tx| async { append(tx, &event).await });
    match result.err().context("was not refused")? {
        AppendError::Refused(text) => Ok(text),
        other => Err(other.into()),
    }
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn an_event_keeps_every_field_and_digit(pool: PgPool) -> Result<()> {
    let event = issued("7")?.at_version(3);
    let id = run_tx!(&pool, "test.append", |tx| async { append(tx, &event).await })?;
    let row: (Uuid, i32, Option<i64>, Uuid, String) = sqlx::query_as(
        "select id, schema_version, aggregate_version, correlation_id, payload->>'amount' from backline.outbox",
    )
    .fetch_one(&pool)
    .await?;
    assert_eq!(row, (id, 2, Some(3), id, "9007199254740993".to_owned()));
    assert_eq!(id.get_version_num(), 7);
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn many_events_come_back_in_order_with_their_digits(pool: PgPool) -> Result<()> {
    let events = (0..50).map(|n| issued(&n.to_string())).collect::<Result<Vec<_>>>()?;
    let returned = run_tx!(&pool, "test.append_all", |tx| async { append_all(tx, &events).await })?;
    let stored: Vec<Uuid> = sqlx::query_scalar("select id from backline.outbox order by aggregate_id::int")
        .fetch_all(&pool)
        .await?;
    assert_eq!(returned, stored);
    let exact: i64 = sqlx::query_scalar(
        "select count(*) from backline.outbox where payload->>'amount' = '9007199254740993'",
    )
    .fetch_one(&pool)
    .await?;
    assert_eq!(exact, 50);
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn a_transaction_that_fails_leaves_no_intent(pool: PgPool) -> Result<()> {
    let event = issued("7")?;
    let failed: Result<(), AppendError> = run_tx!(&pool, "test.rollback", |tx| async {
        append(&mut *tx, &event).await?;
        Err(AppendError::Refused("business rule".to_owned()))
    });
    assert!(failed.is_err());
    assert_eq!(waiting(&pool).await?, 0);
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn refusals_name_the_field(pool: PgPool) -> Result<()> {
    let imperative = NewEvent { event_type: "SendInvoice".to_owned(), ..issued("7")? };
    assert!(refusal(&pool, imperative).await?.contains("event_type"));
    let orphan = NewEvent { organization: None, ..issued("7")? };
    assert!(refusal(&pool, orphan).await?.contains("organization"));
    let nobody = NewEvent { aggregate_id: String::new(), ..issued("7")? };
    assert!(refusal(&pool, nobody).await?.contains("aggregate_id"));
    for text in [r#"{"a": "x\u0000y"}"#, r#"{"a": "\ud83d"}"#] {
        let payload = Payload::from_json(text)?;
        refusal(&pool, NewEvent { payload, ..issued("7")? }).await?;
    }
    assert_eq!(waiting(&pool).await?, 0);
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn an_operation_asked_for_twice_has_one_id(pool: PgPool) -> Result<()> {
    let mut operation = NewOperation::new("stripe.transfer", ids(1), "invoice-7", Payload::from_json("{}")?);
    operation.delay = Some(Duration::from_millis(1500));
    let first = run_tx!(&pool, "test.enqueue", |tx| async { enqueue(tx, &operation).await })?;
    let second = run_tx!(&pool, "test.enqueue", |tx| async { enqueue(tx, &operation).await })?;
    assert_eq!(first, second);
    let delay: f64 =
        sqlx::query_scalar("select extract(epoch from min(delay))::double precision from backline.intake")
            .fetch_one(&pool)
            .await?;
    assert!((delay - 1.5).abs() < 1e-6);
    Ok(())
}
