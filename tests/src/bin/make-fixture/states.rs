//! Every state that can be open when a version is replaced.

use anyhow::{Context, ensure};
use backline_promises::{
    EffectCall, Fate, Look, PAYMENTS, RELAY, Reply, SANDBOX, SCRIPTED, Stack, Then, check, enqueue_in,
    eventually,
};
use serde_json::{Value, json};
use uuid::Uuid;

/// What the provider does is part of what it is asked for.
fn answer(call: &EffectCall, _nth: usize) -> Reply {
    let first_wish = call.kind == "effect.desired" && call.value == json!({"key": "ends-desired", "n": 1});
    match call.value.as_str() {
        Some("hold") => Reply::Hold,
        Some("hold and lose") => Reply::HoldThen(Then::LostBefore),
        Some("lose the answer") => Reply::Lost,
        Some("lose the request") => Reply::LostBefore,
        Some("refuse") => Reply::Refuse,
        _ if first_wish => Reply::Hold,
        _ => Reply::Apply,
    }
}

pub(crate) async fn reach(stack: &mut Stack) -> anyhow::Result<()> {
    let organization = Uuid::now_v7();
    stack.effects().answer(answer);
    history(stack, organization).await?;
    check::settled(stack, &check::Expected::default()).await.context("before anything is stuck")?;
    for_people(stack, organization).await?;
    paused(stack).await?;
    in_flight(stack, organization).await?;
    payments_in_flight(stack, organization).await?;
    in_doubt(stack, organization).await?;
    // Everything that could work on is gone from here on.
    stack.member(SCRIPTED)?.kill9()?;
    stack.member(PAYMENTS)?.kill9()?;
    stack.effects().release();
    eventually("the held requests to end", async || {
        Ok(stack.effects().calls().iter().all(|call| call.answered.is_some()))
    })
    .await?;
    events(stack, organization).await?;
    requests(stack, organization).await?;
    eventually("the held transfer to be applied", async || {
        Ok(stack.journal()?.iter().any(|line| line["was_held"] == true && line["applied"] == true))
    })
    .await?;
    stack.member(SANDBOX)?.kill9()
}

async fn ask(stack: &Stack, organization: Uuid, kind: &str, key: &str, value: Value) -> anyhow::Result<Uuid> {
    Ok(stack.enqueue(kind, organization, key, json!({"value": value})).await?)
}

async fn ask_serial(
    stack: &Stack,
    organization: Uuid,
    kind: &str,
    key: &str,
    value: &str,
) -> anyhow::Result<Uuid> {
    let sql = "select backline.enqueue_operation($1, $2, $3, $4, serial_key => $1)";
    let query = sqlx::query_scalar(sql).bind(kind).bind(organization).bind(key).bind(json!({"value": value}));
    Ok(query.fetch_one(stack.pool()).await?)
}

async fn want(stack: &Stack, organization: Uuid, key: &str, n: i64) -> anyhow::Result<Uuid> {
    let mut connection = stack.pool().acquire().await?;
    sqlx::raw_sql("begin").execute(&mut *connection).await?;
    let sql = "insert into app.desired values ($1, $2) on conflict (key) do update set n = excluded.n";
    sqlx::query(sql).bind(key).bind(n).execute(&mut *connection).await?;
    let id = enqueue_in(&mut connection, "effect.desired", organization, key, &json!({})).await?;
    sqlx::raw_sql("commit").execute(&mut *connection).await?;
    Ok(id)
}

async fn order(stack: &Stack, organization: Uuid, key: &str) -> anyhow::Result<Uuid> {
    Ok(stack.emit("ThingOrdered", organization, key, json!({"key": key, "order": {}})).await?)
}

/// Authorizes a transfer; the answer is its operation's id.
async fn pay(stack: &Stack, organization: Uuid, payment: &str) -> anyhow::Result<Uuid> {
    let amount = json!({"minor": 1250, "currency": "eur"});
    let instruction = json!({"type": "transfer", "amount": amount, "destination": "acct_x"});
    let payload = json!({"payment_id": payment, "authorization": "a", "instruction": instruction});
    let sql = "select backline.operation_id($1, 'stripe.transfer', $2)";
    let id: Uuid = sqlx::query_scalar(sql).bind(organization).bind(payment).fetch_one(stack.pool()).await?;
    stack.emit("PaymentAuthorized", organization, payment, payload).await?;
    Ok(id)
}

/// Outcomes of every sort, with evidence, children and generations.
async fn history(stack: &Stack, organization: Uuid) -> anyhow::Result<()> {
    pay(stack, organization, "done-paid").await?;
    order(stack, organization, "done-ordered").await?;
    ask(stack, organization, "effect.bare", "done-bare", Value::Null).await?;
    ask(stack, organization, "effect.keyed", "done-refused", json!("refuse")).await?;
    ask(stack, organization, "effect.plain", "done-looked-up", json!("lose the answer")).await?;
    stack.enqueue("effect.parent", organization, "done-parent", json!({"children": 2})).await?;
    for n in 1..=2 {
        let id = want(stack, organization, "done-desired", n).await?;
        stack.comes_to(id, "succeeded").await?;
    }
    Ok(())
}

/// Dead, manual and parked: a person's turn.
async fn for_people(stack: &Stack, organization: Uuid) -> anyhow::Result<()> {
    for act in ["poison", "transient"] {
        let input = json!({"acts": [act]});
        let id = stack.enqueue("effect.keyed", organization, &format!("stays-{act}"), input).await?;
        stack.comes_to(id, "dead").await?;
    }
    stack.effects().look(|_, _| Look::Conflict);
    let id = ask(stack, organization, "effect.plain", "stays-contradicted", json!("lose the answer")).await?;
    stack.comes_to(id, "manual").await?;
    stack.effects().look(|_, _| Look::Truth);
    let newer = "select backline.emit_event('ThingOrdered', $1, $1, 'order', 'newer', '{\"key\": \"stays-newer\"}', schema_version => 7)";
    sqlx::query(newer).bind(organization).execute(stack.pool()).await?;
    stack.emit("ThingOrdered", organization, "unreadable", json!({"stays": "unreadable"})).await?;
    has(stack, "two parked deliveries", "select count(*) = 2 from backline.parked_delivery").await
}

/// Another organization whose work an operator has stopped.
async fn paused(stack: &Stack) -> anyhow::Result<()> {
    let organization = Uuid::now_v7();
    let whom = organization.to_string();
    let pause = ["pause", "organization", &whom, "--reason", "fixture", "--actor", "operator"];
    stack.operator(&pause)?;
    // A wish to cancel competes with claims; here there are none.
    for key in ["paused-ready", "cancelled-ready"] {
        let id = ask(stack, organization, "effect.keyed", key, Value::Null).await?;
        stack.comes_to(id, "ready").await?;
    }
    Ok(())
}

/// Requests at the provider, what waits for them, and what is due later.
async fn in_flight(stack: &Stack, organization: Uuid) -> anyhow::Result<()> {
    ask(stack, organization, "effect.keyed", "ends-applied-unheard", json!("hold")).await?;
    ask(stack, organization, "effect.keyed", "ends-lost", json!("hold and lose")).await?;
    ask(stack, organization, "effect.plain", "ends-plain-applied-unheard", json!("hold")).await?;
    let wanted = want(stack, organization, "ends-desired", 1).await?;
    for kind in ["serial", "fifo"] {
        let full = format!("effect.{kind}");
        let holder = ask_serial(stack, organization, &full, &format!("ends-{kind}-1"), "hold").await?;
        stack.comes_to(holder, "running").await?;
        for n in 2..=3 {
            let id = ask_serial(stack, organization, &full, &format!("ends-{kind}-{n}"), "").await?;
            stack.comes_to(id, "waiting").await?;
        }
    }
    let sql = "select backline.enqueue_operation('effect.keyed', $1, 'ends-later', '{}', delay => '30 s')";
    let later = sqlx::query_scalar(sql).bind(organization).fetch_one(stack.pool()).await?;
    stack.comes_to(later, "ready").await?;
    eventually("every request to be at the provider", async || {
        Ok(stack.effects().calls().iter().filter(|call| call.answered.is_none()).count() == 6)
    })
    .await?;
    want(stack, organization, "ends-desired", 2).await?;
    let sql = "select last_generation from backline.operation_identity where id = $1";
    eventually("the newer generation", async || Ok(stack.number(sql, wanted).await? == 2)).await
}

/// A transfer that is at Stripe, one whose answer was lost, and one that is not settled.
async fn payments_in_flight(stack: &mut Stack, organization: Uuid) -> anyhow::Result<()> {
    let ids = "select backline.operation_id($1, 'stripe.transfer', $2)";
    for (payment, fault) in [
        ("ends-held", json!({"kind": "slow", "delay": "10s"})),
        ("ends-in-doubt", json!({"kind": "drop_reply"})),
    ] {
        let id: Uuid =
            sqlx::query_scalar(ids).bind(organization).bind(payment).fetch_one(stack.pool()).await?;
        let rule =
            json!([{"match": {"method": "POST", "operation_id": id}, "when": {"first": 1}, "fault": fault}]);
        stack.add_faults(SANDBOX, &rule)?;
    }
    let unsettled = pay(stack, organization, "ends-unsettled").await?;
    let doubted = pay(stack, organization, "ends-in-doubt").await?;
    stack.comes_to(unsettled, "succeeded").await?;
    stack.comes_to(doubted, "unknown").await?;
    let held = pay(stack, organization, "ends-held").await?;
    stack.comes_to(held, "running").await?;
    eventually("the transfer to be at Stripe", async || {
        Ok(stack.journal()?.iter().any(|line| line["replied"] == "held"))
    })
    .await
}

/// Nobody knows whether the provider acted, and its lookups do not say.
async fn in_doubt(stack: &Stack, organization: Uuid) -> anyhow::Result<()> {
    stack.effects().look(|_, _| Look::Undecided);
    let ids = [
        ask(stack, organization, "effect.plain", "ends-unknown-applied", json!("lose the answer")).await?,
        ask(stack, organization, "effect.plain", "ends-unknown-absent", json!("lose the request")).await?,
    ];
    for id in ids {
        stack.comes_to(id, "unknown").await?;
    }
    Ok(())
}

/// Parked, published but not sealed, and not published.
async fn events(stack: &mut Stack, organization: Uuid) -> anyhow::Result<()> {
    order(stack, organization, "stays-never-sealed").await?;
    has(stack, "a parked entry", "select exists (select from backline.outbox where parked_at is not null)")
        .await?;
    order(stack, organization, "ends-published").await?;
    has(
        stack,
        "a published event",
        "select exists (select from backline.outbox_published where aggregate_id = 'ends-published')",
    )
    .await?;
    stack.member(RELAY)?.kill9()?;
    order(stack, organization, "ends-unpublished").await?;
    pay(stack, organization, "ends-unpublished").await.map(drop)
}

/// In the intake: wishes that nobody has taken up.
async fn requests(stack: &Stack, organization: Uuid) -> anyhow::Result<()> {
    ask(stack, organization, "effect.keyed", "ends-requested", Value::Null).await?;
    ask(stack, organization, "effect.spare", "stays-for-a-newer-build", Value::Null).await?;
    let wish = "select backline.cancel_operation(id) from backline.operation where operation_key = 'cancelled-ready'";
    sqlx::query(wish).execute(stack.pool()).await?;
    Ok(())
}

async fn has(stack: &Stack, what: &str, sql: &'static str) -> anyhow::Result<()> {
    eventually(what, async || Ok(sqlx::query_scalar(sql).fetch_one(stack.pool()).await?)).await
}

/// States that the fixture must have, with how many rows of each at least.
const WANTED: &[(&str, i64, &str)] = &[
    ("ready", 3, "select count(*) from backline.operation where state = 'ready'"),
    ("waiting", 4, "select count(*) from backline.operation where state = 'waiting'"),
    (
        "running under a dead worker's lease",
        7,
        "select count(*) from backline.operation o join backline.lease l on l.id = o.lease_id where o.state = 'running'",
    ),
    ("unknown", 3, "select count(*) from backline.operation where state = 'unknown'"),
    ("manual", 1, "select count(*) from backline.operation where state = 'manual'"),
    ("dead", 2, "select count(*) from backline.operation where state = 'dead'"),
    ("with a newer generation", 1, "select count(*) from backline.operation where desired_generation > 1"),
    ("serial holds", 2, "select count(*) from backline.serial_hold"),
    ("unsettled payments", 1, "select count(*) from backline.operation where kind = 'stripe.settlement'"),
    ("intake", 2, "select count(*) from backline.intake"),
    ("wishes to cancel", 1, "select count(*) from backline.cancel_request"),
    ("pauses", 1, "select count(*) from backline.pause"),
    ("unpublished", 2, "select count(*) from backline.outbox where parked_at is null"),
    ("parked entries", 1, "select count(*) from backline.outbox where parked_at is not null"),
    ("parked deliveries", 2, "select count(*) from backline.parked_delivery"),
    (
        "published and not sealed",
        1,
        "select count(*) from backline.outbox_published p where aggregate_id = 'ends-published' and not exists (select from backline.seal s where s.event_id = p.id)",
    ),
    ("history", 9, "select count(*) from backline.operation_history"),
    ("evidence", 5, "select count(*) from backline.attempt_evidence"),
];

/// A fixture without one of these shows less than it says.
pub(crate) async fn confirm(stack: &Stack) -> anyhow::Result<()> {
    for (what, least, sql) in WANTED {
        let found = stack.count(sql).await?;
        ensure!(found >= *least, "{found} {what}, {least} wanted: run it again");
    }
    for fate in [Fate::Done, Fate::Ends, Fate::Cancelled, Fate::Paused, Fate::Stays] {
        let sql = "select (select count(*) from backline.operation where operation_key like $1 || '%')
            + (select count(*) from backline.operation_history where operation_key like $1 || '%')";
        let found: i64 = sqlx::query_scalar(sql).bind(fate.prefix()).fetch_one(stack.pool()).await?;
        ensure!(found > 0, "no operation of {fate:?}");
    }
    Ok(())
}
