//! What the functions of the producer API do for whoever holds the producer's role and nothing else.

use anyhow::{Context, Result};
use backline_outbox::run_tx;
use sqlx::PgPool;

const EVENT: &str = r#"{"event_type": "InvoiceIssued", "organization": "00000000-0000-7000-8000-000000000001",
    "project": "00000000-0000-7000-8000-000000000002", "aggregate_type": "invoice", "aggregate_id": "7", "payload": {}"#;

/// Runs a statement as a producer, in a transaction that commits when it succeeds.
async fn as_producer(pool: &PgPool, statement: &str) -> Result<()> {
    run_tx!(pool, "test.producer", |tx| async {
        sqlx::query("set local role backline_producer").execute(&mut *tx).await?;
        sqlx::query(sqlx::AssertSqlSafe(statement.to_owned())).execute(&mut *tx).await?;
        Ok::<_, sqlx::Error>(())
    })?;
    Ok(())
}

async fn refusal(pool: &PgPool, statement: &str) -> Result<String> {
    Ok(as_producer(pool, statement).await.err().context("was not refused")?.to_string())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn every_form_of_an_event_and_a_request_can_be_appended_by_a_producer(pool: PgPool) -> Result<()> {
    let organization = "'00000000-0000-7000-8000-000000000001'";
    as_producer(
        &pool,
        &format!("select backline.emit_event('InvoiceIssued', {organization}, {organization}, 'invoice', '7', '{{}}')"),
    )
    .await?;
    let rare = "'InvoiceSent', topic => 'other-events'";
    as_producer(
        &pool,
        &format!(
            "select backline.emit_event({rare}, organization => {organization}, project => {organization},
            aggregate_type => 'invoice', aggregate_id => '7', payload => '{{}}')"
        ),
    )
    .await?;
    as_producer(&pool, &format!("select backline.emit_events('[{EVENT}}}, {EVENT}}}]'::jsonb)")).await?;
    as_producer(
        &pool,
        &format!("select backline.enqueue_operation('mail.send', {organization}, 'k', '{{}}')"),
    )
    .await?;
    let stored: (i64, i64) = sqlx::query_as(
        "select (select count(*) from backline.outbox), (select count(*) from backline.intake)",
    )
    .fetch_one(&pool)
    .await?;
    assert_eq!(stored, (4, 1));
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn a_time_that_no_reader_can_hold_is_refused_before_it_is_stored(pool: PgPool) -> Result<()> {
    for time in ["infinity", "-infinity", "294000-01-01", "1999-12-31"] {
        let request = format!(
            "select backline.enqueue_operation('mail.send', '00000000-0000-7000-8000-000000000001', 'k', '{{}}', expires_at => '{time}')"
        );
        let text = refusal(&pool, &request).await?;
        assert!(text.contains("expires_at must lie between"), "{time}: {text}");
        // The role may insert by itself, too; the table refuses what the functions refuse.
        let raw = format!(
            "insert into backline.outbox (lane, id, event_type, schema_version, topic, aggregate_type, aggregate_id, correlation_id, occurred_at, payload)
             select 1, i, 'A', 1, 't', 'a', '1', i, '{time}', '{{}}' from gen_random_uuid() i"
        );
        assert!(refusal(&pool, &raw).await?.contains("outbox_occurred_at_check"), "{time}");
    }
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn a_misspelled_argument_is_named_with_its_element(pool: PgPool) -> Result<()> {
    let text = refusal(
        &pool,
        &format!(r#"select backline.emit_events('[{EVENT}}}, {EVENT}, "schema_verison": 2}}]'::jsonb)"#),
    )
    .await?;
    assert!(text.contains(r#"events[1] has "schema_verison""#), "{text}");
    let text = refusal(&pool, "select backline.emit_events('[1]'::jsonb)").await?;
    assert!(text.contains("events[0] must be an object"), "{text}");
    Ok(())
}
