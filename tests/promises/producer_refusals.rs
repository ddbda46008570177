//! The rules of an event stand three times in SQL: in the one condition of `emit_event`, in the conditions of
//! `emit_events`, and in words in `emit_rare_event`. What one refuses all refuse, in the same words, and write nothing;
//! what one takes all take, and write the same row.

mod lists;

use anyhow::{Context, ensure};
use backline_promises::{Database, Server};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, PgPool};
use uuid::{NoContext, Timestamp, Uuid};

/// The arguments of one event, as a record of the JSON `$1`; what is missing is null.
const ARGUMENTS: &str = "(event_type text, organization uuid, project uuid, aggregate_type text, aggregate_id text, payload jsonb,
    schema_version integer, aggregate_version bigint, correlation_id uuid, causation_id uuid, traceparent text, tracestate text,
    event_id uuid, topic text)";

/// Every way in, with one event.
const PATHS: [(&str, &str); 4] = [
    (
        "emit_event",
        "select array[backline.emit_event(r.event_type, r.organization, r.project, r.aggregate_type, r.aggregate_id, r.payload,
            coalesce(r.schema_version, 1), r.aggregate_version, r.correlation_id, r.causation_id, r.traceparent, r.tracestate, r.event_id,
            coalesce(r.topic, 'domain-events'))] from jsonb_to_record($1) as r",
    ),
    (
        "emit_rare_event",
        "select array[backline.emit_rare_event(r.event_type, r.organization, r.project, r.aggregate_type, r.aggregate_id, r.payload,
            coalesce(r.schema_version, 1), r.aggregate_version, r.correlation_id, r.causation_id, r.traceparent, r.tracestate, r.event_id,
            coalesce(r.topic, 'domain-events'))] from jsonb_to_record($1) as r",
    ),
    (ARRAYS, MANY),
    (JSON, "select backline.emit_events(jsonb_build_array($1::jsonb)) from jsonb_to_record('{}') as r"),
];

const ARRAYS: &str = "emit_events with arrays";
const JSON: &str = "emit_events with JSON";

/// An array for each argument; optional ones that no row has are left to their defaults in the rows.
const MANY: &str = "select backline.emit_events(array_agg(r.event_type), array_agg(r.organization), array_agg(r.project),
    array_agg(r.aggregate_type), array_agg(r.aggregate_id), array_agg(r.payload), array_agg(r.schema_version), array_agg(r.aggregate_version),
    array_agg(r.correlation_id), array_agg(r.causation_id), array_agg(r.traceparent), array_agg(r.tracestate), array_agg(r.event_id),
    array_agg(r.topic)) from jsonb_to_recordset(jsonb_build_array($1::jsonb)) as r";

/// The same with a healthy event on either side.
const AMONG: [(&str, &str); 2] = [
    (ARRAYS, "jsonb_to_recordset(jsonb_build_array($2::jsonb, $1::jsonb, $2::jsonb)) as r"),
    (JSON, "select backline.emit_events(jsonb_build_array($2::jsonb, $1::jsonb, $2::jsonb))"),
];

fn healthy() -> Value {
    json!({"event_type": "PaymentAuthorized", "organization": Uuid::nil(), "project": Uuid::max(), "aggregate_type": "payment",
        "aggregate_id": "p", "payload": {"n": 1}})
}

/// A healthy event with other fields.
fn with(fields: &Value) -> Value {
    let mut event = healthy();
    for (name, value) in fields.as_object().into_iter().flatten() {
        event[name] = value.clone();
    }
    event
}

/// A UUIDv7 minted so many seconds from now.
fn minted(from_now: i64) -> anyhow::Result<Uuid> {
    #[expect(clippy::disallowed_methods, reason = "ids of the past and of the future are what is tested")]
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_secs();
    let at = now.checked_add_signed(from_now).context("before 1970")?;
    Ok(Uuid::new_v7(Timestamp::from_unix(NoContext, at, 0)))
}

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// What must be refused: the field that the error names, its SQLSTATE, and the fields that are wrong.
fn refused() -> anyhow::Result<Vec<(&'static str, &'static str, Value)>> {
    const INVALID: &str = "22023";
    const TOO_LARGE: &str = "54000";
    let mut rows = Vec::new();
    let mut add = |field: &'static str, code, values: Vec<Value>| {
        rows.extend(values.into_iter().map(|value| (field, code, json!({field: value}))));
    };
    let names = [
        Value::Null,
        json!(""),
        json!("Ed"),
        json!("Payment"),
        json!("PaymentAuthorize"),
        json!("PaymentAuthorizing"),
        json!("paymentAuthorized"),
        json!("Payment_Authorized"),
        json!("Payment.Authorized"),
        json!("1PaymentAuthorized"),
        json!(" PaymentAuthorized"),
        json!("PaymentAuthorized "),
        json!("PaymentAuthorized\n"),
        json!("PaymentAuthorized\nx"),
        json!("PaymentAuthoriz\u{e9}d"),
        json!("\u{420}aymentAuthorized"),
        json!("PaymentAuthorized\u{1f600}"),
        // A consumer's need, though it ends in `ed`; and the past tense in other letters.
        json!("PaymentRequested"),
        json!("RefundRequested"),
        json!("PaymentPAID"),
        json!("PaymentBuild"),
        json!(format!("P{}ed", "a".repeat(126))),
    ];
    add("event_type", INVALID, names.to_vec());
    add("organization", INVALID, vec![Value::Null]);
    add("project", INVALID, vec![Value::Null]);
    let types =
        ["", "1payment", "_payment", "pay ment", "payment\n", "pay/ment", "p\u{e4}yment", &"a".repeat(129)];
    add("aggregate_type", INVALID, types.map(Value::from).into_iter().chain([Value::Null]).collect());
    let ids = ["", &"x".repeat(513), &"\u{e9}".repeat(257), &"\u{1f600}".repeat(129)];
    add("aggregate_id", INVALID, ids.map(Value::from).into_iter().chain([Value::Null]).collect());
    add("payload", INVALID, vec![Value::Null]);
    // As text six times what it is in memory: a control character is escaped.
    let escaped = json!({"text": "\u{1}".repeat(1_500_000)});
    add(
        "payload",
        TOO_LARGE,
        vec![json!({"text": "x".repeat(9_000_000)}), json!(["\n".repeat(4_500_000)]), escaped],
    );
    add("schema_version", INVALID, vec![json!(0), json!(-1), json!(i32::MIN)]);
    let parents = [
        "",
        "x",
        &TRACE.to_uppercase(),
        &format!("{TRACE}0"),
        &TRACE[1..],
        &TRACE.replace("-b7", "b-7"),
        &TRACE.replace('7', "g"),
        &format!("{}\n", &TRACE[..54]),
    ];
    add("traceparent", INVALID, parents.map(Value::from).to_vec());
    add("tracestate", INVALID, vec![json!("x".repeat(513)), json!("\u{e9}".repeat(257))]);
    let day = 86_400;
    let ids = [Uuid::nil(), Uuid::max(), Uuid::from_u128(0x1234_5678_1234_4234_8234_1234_5678_1234)];
    let late = [minted(-day - 60)?, minted(day + 60)?, minted(-30 * day)?, minted(3_650 * day)?];
    add("event_id", INVALID, ids.into_iter().chain(late).map(|id| json!(id)).collect());
    let topics =
        ["", "ab", "1topic", "goog-topic", "to pic", "topic\n", "t\u{f6}pic", "a/b/c", &"t".repeat(256)];
    add("topic", INVALID, topics.map(Value::from).to_vec());
    // Scopes: what is declared to have none needs none, and what is declared to carry secrets is refused all the same.
    rows.push((
        "organization",
        INVALID,
        json!({"event_type": "TenantMoved", "organization": null, "project": null}),
    ));
    rows.push(("project", INVALID, json!({"event_type": "TenantLeft", "project": null})));
    rows.push(("organization", INVALID, json!({"organization": null, "project": null})));
    rows.push((
        "organization",
        INVALID,
        json!({"event_type": "UserDeletionRequested", "organization": null, "project": Uuid::max()}),
    ));
    rows.push((
        "event_type",
        "0A000",
        json!({"event_type": "MagicLinkEmailRequested", "organization": null, "project": null}),
    ));
    rows.push(("event_type", "0A000", json!({"event_type": "InvitationEmailRequested"})));
    Ok(rows)
}

/// What must be taken, at the edge of each rule.
fn taken() -> anyhow::Result<Vec<Value>> {
    let mut rows = vec![
        json!({}),
        json!({"event_type": "Red"}),
        json!({"event_type": format!("P{}ed", "a".repeat(125))}),
        json!({"event_type": "TenantMoved", "project": null}),
        json!({"event_type": "UserDeletionRequested", "organization": null, "project": null}),
        json!({"aggregate_type": "a".repeat(128)}),
        json!({"aggregate_type": "a.b-c_D9"}),
        json!({"aggregate_id": "x".repeat(512)}),
        json!({"aggregate_id": "\u{e9}".repeat(256)}),
        json!({"payload": {"big": 9_007_199_254_740_993_i64, "text": "\\u0000 is text, \u{1f600} too"}}),
        json!({"payload": {"text": "x".repeat(4_100_000)}}),
        json!({"payload": {"text": "\u{1}".repeat(1_499_000)}}),
        json!({"schema_version": 7, "aggregate_version": i64::MAX, "correlation_id": Uuid::nil(), "causation_id": Uuid::max()}),
        json!({"traceparent": TRACE, "tracestate": "x".repeat(512)}),
        json!({"topic": "abc"}),
        json!({"topic": format!("t{}", "~".repeat(254))}),
        json!({"event_id": minted(-3_600)?}),
        json!({"event_id": minted(3_600)?}),
    ];
    let irregular = ["Sent", "Paid", "Overdrawn", "Reset", "Withdrawn"];
    rows.extend(irregular.map(|verb| json!({"event_type": format!("Account{verb}")})));
    Ok(rows)
}

async fn database() -> anyhow::Result<Database> {
    let database = Database::create(&Server::shared()?).await?;
    let sql = "insert into backline.event_scope values ('TenantMoved', 'organization', 'test')";
    sqlx::query(sql).execute(database.pool()).await?;
    Ok(database)
}

async fn written(pool: &PgPool) -> anyhow::Result<i64> {
    Ok(sqlx::query_scalar("select count(*) from backline.outbox").fetch_one(pool).await?)
}

/// The statement with its record type, which `from … as r` ends with.
fn statement(sql: &str) -> AssertSqlSafe<String> {
    AssertSqlSafe(format!("{sql}{ARGUMENTS}"))
}

/// SQLSTATE and text of the refusal.
fn refusal(result: Result<Vec<Uuid>, sqlx::Error>) -> anyhow::Result<(String, String)> {
    match result {
        Ok(ids) => anyhow::bail!("it was taken: {ids:?}"),
        Err(sqlx::Error::Database(error)) => {
            Ok((error.code().unwrap_or_default().into_owned(), error.message().to_owned()))
        }
        Err(error) => Err(error.into()),
    }
}

/// What a row is called in a report.
fn short(row: &Value) -> String {
    row.to_string().chars().take(120).collect()
}

#[tokio::test]
async fn what_one_way_in_refuses_all_refuse_in_the_same_words_and_write_nothing() -> anyhow::Result<()> {
    let database = database().await?;
    let pool = database.pool();
    let mut wrong = Vec::new();
    for (field, code, fields) in refused()? {
        let event = with(&fields);
        let mut told: Option<(String, String)> = None;
        let mut hear = |path: &str, result: Result<Vec<Uuid>, sqlx::Error>| match refusal(result) {
            Ok(refusal) => {
                if refusal.0 != code || !refusal.1.contains(field) {
                    wrong.push(format!(
                        "{path}, {}: {refusal:?} names no {field} with {code}",
                        short(&fields)
                    ));
                }
                let first = told.get_or_insert_with(|| refusal.clone());
                if *first != refusal {
                    wrong.push(format!("{path}, {}: {refusal:?}, elsewhere {first:?}", short(&fields)));
                }
            }
            Err(error) => wrong.push(format!("{path}, {}: {error}", short(&fields))),
        };
        for (path, sql) in PATHS {
            hear(path, sqlx::query_scalar(statement(sql)).bind(&event).fetch_one(pool).await);
        }
        for (path, sql) in AMONG {
            let sql = if path == ARRAYS {
                let (head, _) = MANY.split_once("jsonb_to_recordset").context("a set of records")?;
                statement(&format!("{head}{sql}"))
            } else {
                AssertSqlSafe(sql.to_owned())
            };
            hear(path, sqlx::query_scalar(sql).bind(&event).bind(healthy()).fetch_one(pool).await);
        }
        if written(pool).await? != 0 {
            wrong.push(format!("{}: something was written", short(&fields)));
            sqlx::query("delete from backline.outbox").execute(pool).await?;
        }
    }
    ensure!(wrong.is_empty(), "the ways in differ:\n{}", wrong.join("\n"));
    Ok(())
}

#[tokio::test]
async fn what_one_way_in_takes_all_take_and_write_the_same() -> anyhow::Result<()> {
    let database = database().await?;
    let pool = database.pool();
    // Without what is new each time: the id, and what stands for it; the time.
    let rows = "delete from backline.outbox o returning (to_jsonb(o) - array['id', 'seq', 'occurred_at', 'created_at'])
        || jsonb_build_object('correlation_id', nullif(o.correlation_id, o.id))";
    let mut wrong = Vec::new();
    for fields in taken()? {
        let event = with(&fields);
        let mut first: Option<Vec<Value>> = None;
        for (path, sql) in PATHS {
            let taken = sqlx::query_scalar::<_, Vec<Uuid>>(statement(sql)).bind(&event).fetch_one(pool).await;
            let ids = match taken {
                Ok(ids) => ids,
                Err(error) => {
                    wrong.push(format!("{path}, {}: {error}", short(&fields)));
                    continue;
                }
            };
            let given = event["event_id"].as_str();
            if ids.len() != 1 || given.is_some_and(|given| ids.iter().any(|id| id.to_string() != given)) {
                wrong.push(format!("{path}, {}: {ids:?}", short(&fields)));
            }
            let row: Vec<Value> = sqlx::query_scalar(rows).fetch_all(pool).await?;
            let expected = first.get_or_insert_with(|| row.clone());
            if row.len() != 1 || *expected != row {
                wrong.push(format!("{path}, {}: another row", short(&fields)));
            }
        }
    }
    ensure!(wrong.is_empty(), "the ways in differ:\n{}", wrong.join("\n"));
    Ok(())
}

/// These never reach the functions: PostgreSQL's own types refuse them, in the producer's statement.
#[tokio::test]
async fn what_no_value_can_hold_is_refused_on_every_way_in() -> anyhow::Result<()> {
    let database = database().await?;
    let pool = database.pool();
    let text = healthy().to_string();
    let broken = [
        (r#"{"n":1}"#, r#"{"n":"x\u0000y"}"#, "22P05"),
        (r#"{"n":1}"#, r#"{"n":"\ud83d"}"#, "22P02"),
        (r#"{"n":1}"#, r#"{"n":"\ude00"}"#, "22P02"),
        (r#"{"n":1}"#, r#"{"n":1e400000}"#, "22003"),
        (r#""p""#, r#""p\u0000""#, "22P05"),
        (r#""PaymentAuthorized""#, r#""Payment\ud83dAuthorized""#, "22P02"),
        (r#""payload""#, r#""schema_version":2147483648,"payload""#, "22003"),
        (r#""payload""#, r#""aggregate_version":9223372036854775808,"payload""#, "22003"),
        (r#""payload""#, r#""event_id":"no id","payload""#, "22P02"),
    ];
    for (from, to, code) in broken {
        let event = text.replacen(from, to, 1);
        ensure!(event != text, "{from} is not in {text}");
        for (path, sql) in PATHS {
            // As text, as a producer without a JSON type of its own sends it.
            let sql = sql.replace("$1::jsonb", "$1").replace("$1", "$1::text::jsonb");
            let result = sqlx::query_scalar(statement(&sql)).bind(&event).fetch_one(pool).await;
            let (told, message) = refusal(result).with_context(|| format!("{path}, {to}"))?;
            assert_eq!(told, code, "{path}, {to}: {message}");
        }
    }
    // A NUL in a text argument does not even get through the protocol.
    for argument in 1..=2 {
        let sql = "select array[backline.emit_event($1, $3, $3, 'payment', $2, '{}')]";
        let text = |n| if n == argument { "Payment\0Authorized" } else { "PaymentAuthorized" };
        let query = sqlx::query_scalar(sql).bind(text(1)).bind(text(2)).bind(Uuid::nil());
        assert_eq!(refusal(query.fetch_one(pool).await)?.0, "22021");
    }
    assert_eq!(written(pool).await?, 0);
    Ok(())
}
