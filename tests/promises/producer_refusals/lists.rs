//! What the ways in do with arrays, JSON lists and values that no record of JSON can hold.

use super::{database, healthy, refusal, short, with, written};
use anyhow::{Context, ensure};
use serde_json::{Value, json};
use uuid::Uuid;

/// A null where an argument has a default: one event was told so by name, an array has no other way to leave it out.
#[tokio::test]
async fn a_null_for_a_default_is_refused_for_one_event_and_the_default_in_an_array() -> anyhow::Result<()> {
    let database = database().await?;
    let pool = database.pool();
    for (field, sql) in [
        (
            "schema_version",
            "select array[backline.emit_event('Red', $1, $1, 'a', 'b', '{}', schema_version => null)]",
        ),
        ("topic", "select array[backline.emit_event('Red', $1, $1, 'a', 'b', '{}', topic => null)]"),
    ] {
        let (code, message) = refusal(sqlx::query_scalar(sql).bind(Uuid::nil()).fetch_one(pool).await)?;
        ensure!(code == "22023" && message.contains(field), "{code} {message}");
    }
    assert_eq!(written(pool).await?, 0);
    let sql = "select backline.emit_events(array['Red'], array[$1], array[$1], array['a'], array['b'], array['{}'::jsonb],
        schema_version => array[null::integer], topic => array[null::text])";
    sqlx::query(sql).bind(Uuid::nil()).execute(pool).await?;
    let sql = "select schema_version = 1 and topic = 'domain-events' from backline.outbox";
    ensure!(sqlx::query_scalar::<_, bool>(sql).fetch_one(pool).await?, "the defaults");
    Ok(())
}

/// JSON's null is no payload: `jsonb_to_record` makes SQL's null of it, a producer's parameter does not.
#[tokio::test]
async fn a_json_null_is_no_payload_on_any_way_in() -> anyhow::Result<()> {
    let database = database().await?;
    let pool = database.pool();
    for sql in [
        "select array[backline.emit_event('Red', $1, $1, 'a', 'b', 'null')]",
        "select array[backline.emit_event('Red', $1, $1, 'a', 'b', 'null', topic => 'other')]",
        "select backline.emit_events(array['Red', 'Red'], array[$1, $1], array[$1, $1], array['a', 'a'], array['b', 'b'],
            array['{}', 'null']::jsonb[])",
    ] {
        let (code, message) = refusal(sqlx::query_scalar(sql).bind(Uuid::nil()).fetch_one(pool).await)?;
        ensure!(code == "22023" && message == "emit_event: payload is required", "{sql}: {code} {message}");
    }
    assert_eq!(written(pool).await?, 0);
    Ok(())
}

/// What a compressed column holds is measured as the text that is published, not as it lies on the disk.
#[tokio::test]
async fn a_payload_that_comes_compressed_from_a_table_is_measured_as_text() -> anyhow::Result<()> {
    let database = database().await?;
    let pool = database.pool();
    let table =
        "create table document (body jsonb); insert into document select to_jsonb(repeat('x', 9000100))";
    sqlx::raw_sql(table).execute(pool).await?;
    for sql in [
        "select array[backline.emit_event('Red', $1, $1, 'a', 'b', body)] from document",
        "select backline.emit_events(array['Red'], array[$1], array[$1], array['a'], array['b'], array_agg(body)) from document",
    ] {
        let (code, message) = refusal(sqlx::query_scalar(sql).bind(Uuid::nil()).fetch_one(pool).await)?;
        ensure!(code == "54000" && message.contains("payload"), "{sql}: {code} {message}");
    }
    assert_eq!(written(pool).await?, 0);
    Ok(())
}

/// What a producer aggregates may be nothing.
#[tokio::test]
async fn an_aggregate_over_no_rows_is_no_event_and_no_ids() -> anyhow::Result<()> {
    let database = database().await?;
    let pool = database.pool();
    for rows in [json!([]), json!([{}])] {
        let sql = "select backline.emit_events(array_agg(e), array_agg(o), array_agg(o), array_agg(e), array_agg(e), array_agg(j))
            from jsonb_to_recordset($1) as r(e text, o uuid, j jsonb) where e is not null";
        let ids: Option<Vec<Uuid>> = sqlx::query_scalar(sql).bind(rows).fetch_one(pool).await?;
        assert_eq!(ids, Some(Vec::new()));
    }
    assert_eq!(written(pool).await?, 0);
    Ok(())
}

/// Ids of one call ascend, of its last digit's turn too, and those of two calls differ.
#[tokio::test]
async fn ids_of_a_call_ascend_and_are_the_calls_own() -> anyhow::Result<()> {
    let database = database().await?;
    let sql = "select backline.emit_events(array_fill('Red'::text, array[$2]), array_fill($1, array[$2]), array_fill($1, array[$2]),
        array_fill('a'::text, array[$2]), array_fill('b'::text, array[$2]), array_fill('{}'::jsonb, array[$2]))";
    let mut ids = Vec::new();
    for _ in 0..2 {
        let more: Vec<Uuid> =
            sqlx::query_scalar(sql).bind(Uuid::nil()).bind(5_000).fetch_one(database.pool()).await?;
        ensure!(more.len() == 5_000 && more.is_sorted(), "not in order");
        ensure!(
            more.iter().all(|id| id.get_version_num() == 7 && id.get_variant() == uuid::Variant::RFC4122)
        );
        ids.extend(more);
    }
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 10_000);
    Ok(())
}

/// Arrays that do not fit together, and JSON that is no list of events, are refused before anything is written.
#[tokio::test]
async fn a_list_that_is_none_is_refused_as_a_whole() -> anyhow::Result<()> {
    let database = database().await?;
    let pool = database.pool();
    let event = healthy();
    let lists = [
        ("array", json!({"event_type": "Red"})),
        ("array", json!("Red")),
        ("array", Value::Null),
        ("events[1]", json!([event, "Red"])),
        ("events[0]", json!([null])),
        ("events[1]", json!([event, with(&json!({"shema_version": 1})), event])),
        ("event_type", json!([event, {}])),
    ];
    for (word, list) in lists {
        let query = sqlx::query_scalar("select backline.emit_events($1::jsonb)").bind(&list);
        let (code, message) = refusal(query.fetch_one(pool).await).with_context(|| short(&list))?;
        ensure!(code == "22023" && message.contains(word), "{}: {code} {message}", short(&list));
    }
    for (field, sql) in [
        (
            "aggregate_id",
            "select backline.emit_events(array['Red', 'Red'], array[$1, $1], array[$1, $1], array['a', 'a'], array['b'], array['{}', '{}']::jsonb[])",
        ),
        (
            "event_type",
            "select backline.emit_events(array['Red'], array[$1], array[$1], array['a'], array['b'], array['{}']::jsonb[], schema_version => array[1, 2])",
        ),
    ] {
        let (code, message) = refusal(sqlx::query_scalar(sql).bind(Uuid::nil()).fetch_one(pool).await)?;
        ensure!(code == "22023" && message.contains(field), "{field}: {code} {message}");
    }
    assert_eq!(written(pool).await?, 0);
    Ok(())
}
