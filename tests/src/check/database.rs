//! Invariants that the database alone can show.

use super::Expected;
use crate::Stack;
use sqlx::Row;
use uuid::Uuid;

/// Number, what it says, and a statement that returns the rows that break it, as text.
const NEVER: &[(&str, &str)] = &[
    (
        "8 a completed generation has exactly one outcome",
        "select id::text || ' generation ' || generation from backline.operation_history group by id, generation having count(*) > 1",
    ),
    (
        "8 a finished command is not open as well",
        "select o.id::text from backline.operation o join backline.operation_history h on h.id = o.id and h.generation = o.desired_generation",
    ),
    (
        "9 tokens only rise",
        "select operation::text from (select operation, token, lag(token) over (partition by operation order by seq) as before from app.token_log) t where token <= before",
    ),
    (
        "9 an outcome was written by the claim that was current",
        "select h.id::text || ' by token ' || h.token from backline.operation_history h where h.token is not null and exists (select from app.token_log t where t.operation = h.id and t.token > h.token and t.at < h.finished_at)",
    ),
    (
        "10 no generation beyond what was asked for",
        "select h.id::text from backline.operation_history h join backline.operation_identity i using (id) group by h.id, i.last_generation having max(h.generation) > i.last_generation",
    ),
    (
        "10 the last generation asked for is the one that ended last",
        "select i.id::text from backline.operation_identity i join backline.operation_history h using (id) where not exists (select from backline.operation o where o.id = i.id) group by i.id, i.last_generation having max(h.generation) <> i.last_generation",
    ),
    (
        "11 an operation's id is computed from its name",
        "select id::text from backline.operation where id <> backline.operation_id(organization, kind, operation_key, occurrence) union all select id::text from backline.operation_history where id <> backline.operation_id(organization, kind, operation_key, occurrence)",
    ),
    (
        "11 a record that ran again emitted the same events",
        "select causation_id::text || ' ' || event_type from backline.outbox_published where causation_id is not null group by causation_id, event_type, aggregate_id, payload, occurred_at having count(distinct id) > 1",
    ),
    (
        "12 a finished submission has its settlement",
        "select h.id::text from backline.operation_history h where h.kind like 'stripe.%' and h.kind <> 'stripe.settlement' and h.outcome = 'succeeded' and not exists (select from backline.operation_identity i where i.id = backline.operation_id(h.organization, 'stripe.settlement', h.id::text)) and not exists (select from backline.intake i where i.operation_key = h.id::text)",
    ),
    (
        "12 a finished parent has every child",
        "select h.id::text || ' child ' || n from backline.operation_history h cross join lateral generate_series(0, (h.input ->> 'children')::int - 1) n where h.kind = 'effect.parent' and h.outcome = 'succeeded' and not exists (select from backline.operation_identity i where i.id = backline.operation_id(h.organization, 'effect.keyed', h.id || '/' || n)) and not exists (select from backline.intake i where i.operation_id = backline.operation_id(h.organization, 'effect.keyed', h.id || '/' || n))",
    ),
    (
        "13 a seal never stands without its operation",
        "select s.event_id::text from backline.seal s join backline.outbox_published p on p.id = s.event_id where p.event_type in ('PaymentAuthorized', 'ThingOrdered') and not exists (select from backline.operation_identity i where i.id in (backline.operation_id(p.organization, 'effect.keyed', backline.stored_key(p.payload ->> 'key')), backline.operation_id(p.organization, 'stripe.' || (p.payload #>> '{instruction,type}'), backline.stored_key(p.payload ->> 'payment_id'))))",
    ),
    (
        "15 nothing runs under an expired lease",
        "select o.id::text from backline.operation o join backline.lease l on l.id = o.lease_id where l.until < clock_timestamp()",
    ),
    (
        "15 nothing runs without a lease",
        "select o.id::text from backline.operation o where o.state = 'running' and not exists (select from backline.lease l where l.id = o.lease_id)",
    ),
    (
        "15 attempts of one submission rise by one",
        "select operation_id::text from (select operation_id, attempt, lag(attempt) over (partition by operation_id, generation order by at) as before from backline.attempt_evidence where not fenced) e where attempt < before - 1",
    ),
    (
        "16 what failed for good says why, and since when",
        "select id::text from backline.operation where state in ('dead', 'manual') and (failure_class is null or failure_code is null or failed_at is null or first_failed_at is null) union all select id::text from backline.operation_history where outcome = 'rejected' and code is null",
    ),
    (
        "4 a record's rows and its outcome are one: rows without outcome",
        "select d.operation::text from app.done d where not exists (select from backline.operation_history h where h.id = d.operation and h.generation = d.generation and h.outcome::text = d.outcome)",
    ),
    (
        "4 a record's rows and its outcome are one: rows twice",
        "select operation::text from app.done group by operation, generation having count(*) > 1",
    ),
    (
        "4 a record's rows and its outcome are one: outcome without rows",
        "select h.id::text from backline.operation_history h where h.kind in ('effect.keyed', 'effect.plain', 'effect.parent', 'effect.desired') and h.outcome in ('succeeded', 'rejected', 'obsolete') and not exists (select from app.done d where d.operation = h.id and d.generation = h.generation)",
    ),
    (
        "serial keys are held by somebody who is there",
        "select s.serial_key from backline.serial_hold s where not exists (select from backline.operation o where o.id = s.operation_id)",
    ),
];

pub(super) async fn check(stack: &Stack, expected: &Expected) -> anyhow::Result<Vec<String>> {
    let mut violations = Vec::new();
    for (name, sql) in NEVER {
        for row in sqlx::query(*sql).fetch_all(stack.pool()).await? {
            violations.push(format!("{name}: {}", row.get::<String, _>(0)));
        }
    }
    for (found, ids, name) in [
        (true, &expected.committed, "1 a committed intent is lost"),
        (false, &expected.rolled_back, "2 an intent that was rolled back exists"),
    ] {
        for id in ids.iter().filter(|id| !id.is_nil()) {
            if known(stack, *id).await? != found {
                violations.push(format!("{name}: {id}"));
            }
        }
    }
    violations.extend(vacuity(stack, expected).await?);
    Ok(violations)
}

async fn known(stack: &Stack, id: Uuid) -> sqlx::Result<bool> {
    let sql = "select exists (select from backline.outbox where id = $1) or exists (select from backline.outbox_published where id = $1)
        or exists (select from backline.intake where operation_id = $1) or exists (select from backline.operation_identity where id = $1)";
    sqlx::query_scalar(sql).bind(id).fetch_one(stack.pool()).await
}

/// Invariant 28: the work happened, and something was recovered from.
async fn vacuity(stack: &Stack, expected: &Expected) -> anyhow::Result<Vec<String>> {
    let mut violations = Vec::new();
    let sql = "select (select count(*) from backline.operation_history) + (select count(*) from backline.outbox_published)
        + (select count(*) from backline.outbox where parked_at is not null) + (select count(*) from backline.operation)";
    let work: i64 = sqlx::query_scalar(sql).fetch_one(stack.pool()).await?;
    if work == 0 {
        violations.push("28 nothing happened: no event, no operation".to_owned());
    }
    if expected.recoveries > 0 {
        let evidence = stack.count("select count(*) from backline.attempt_evidence").await?;
        let repeated = super::broker::surplus(stack)? + super::metrics::recoveries(stack)?;
        if evidence + repeated < expected.recoveries {
            violations.push(format!(
                "28 only {} recoveries, {} expected: the fault changed nothing",
                evidence + repeated,
                expected.recoveries
            ));
        }
    }
    Ok(violations)
}

/// What still moves, in words; empty when nothing does (invariants 3, 10 and 15 need rest).
pub(super) async fn unrest(stack: &Stack, expected: &Expected) -> anyhow::Result<String> {
    let sql = "select (select count(*) from backline.outbox where parked_at is null) as outbox,
        (select count(*) from backline.outbox where parked_at is not null) as parked,
        (select count(*) from backline.intake) as intake,
        (select count(*) from backline.operation where state not in ('dead', 'manual')) as open,
        (select count(*) from backline.operation where state in ('dead', 'manual')) as stuck,
        (select count(*) from backline.outbox_published p join backline.required_consumer r using (event_type)
            where not exists (select from backline.seal s where s.event_id = p.id and s.consumer = r.consumer)
              and not exists (select from backline.parked_delivery d where d.event_id = p.id and d.consumer = r.consumer)) as unsealed,
        (select string_agg(distinct kind || ' ' || state || ' ' || coalesce(failure_code, ''), ', ') from backline.operation) as states";
    let row = sqlx::query(sql).fetch_one(stack.pool()).await?;
    let counted = |name: &str| row.get::<i64, _>(name);
    let wanted = [
        ("outbox", 0),
        ("parked", expected.parked),
        ("unsealed", 0),
        ("intake", expected.waiting),
        ("open", 0),
        ("stuck", expected.stuck),
    ];
    let unrest: Vec<String> = wanted
        .iter()
        .filter(|(name, number)| counted(name) != *number)
        .map(|(name, number)| format!("{name} is {}, not {number}", counted(name)))
        .collect();
    if unrest.is_empty() {
        return Ok(String::new());
    }
    Ok(format!("{} ({})", unrest.join(", "), row.get::<Option<String>, _>("states").unwrap_or_default()))
}
