//! Checks of what is stored.

use super::check::Check;
use crate::output::span;
use sqlx::PgPool;

/// A relay that runs hands over within a second; a minute is an outage that people can still overlook.
const UNPUBLISHED: (f64, f64) = (60.0, 900.0);
/// The sweep looks every few seconds.
const EXPIRED: (f64, f64) = (60.0, 600.0);
/// Dead rows pile up behind a held snapshot: minutes slow claims down, an hour may stop them.
const SNAPSHOT: (f64, f64) = (300.0, 3600.0);
/// Folding happens with every claim round.
const REQUESTED: (f64, f64) = (60.0, 900.0);

pub(super) async fn checks(pool: &PgPool) -> sqlx::Result<Vec<Check>> {
    let life = sqlx::query_file!("sql/doctor_incarnation.sql").fetch_one(pool).await?;
    let state = sqlx::query_file!("sql/doctor_state.sql").fetch_one(pool).await?;
    let mut checks = Vec::new();
    checks.push(if life.same {
        Check::ok("incarnation", format!("timeline {}", life.running))
    } else {
        Check::warn(
            "incarnation",
            format!("stored timeline {}, running {}: a failover or restore", life.stored, life.running),
            "start a worker: it marks what may have been presented unknown and looks it up before anything is claimed",
        )
    });
    checks.push(if state.days_missing + state.months_missing == 0 {
        Check::ok("partitions", "made ahead")
    } else {
        Check::fail(
            "partitions",
            format!(
                "{} partitions of the coming days and {} of the coming month are missing",
                state.days_missing, state.months_missing
            ),
            "run `select backline.ensure_partitions()` until it returns 0; a running worker does it hourly",
        )
    });
    checks.push(match (state.kinds, state.consumers) {
        (0, _) => Check::warn(
            "kinds",
            "no worker has declared any",
            "start a worker: it declares its kinds and consumers",
        ),
        (kinds, consumers) => Check::ok("kinds", format!("{kinds} kinds, {consumers} consumers declared")),
    });
    checks.push(Check::age(
        "unpublished",
        state.unpublished_seconds,
        UNPUBLISHED,
        format!("{} entries, oldest {}", state.unpublished, span(state.unpublished_seconds)),
        "see that a relay runs and reaches Pub/Sub",
    ));
    checks.push(Check::age(
        "requests",
        state.requested_seconds,
        REQUESTED,
        format!("oldest not folded {}", span(state.requested_seconds)),
        "see that a worker of the kind runs and reaches the database",
    ));
    checks.push(Check::age(
        "leases",
        state.expired_seconds,
        EXPIRED,
        format!("{} operations in expired leases", state.expired),
        "see that a worker runs: its sweep takes them back",
    ));
    checks.push(Check::age(
        "snapshots",
        state.snapshot_seconds,
        SNAPSHOT,
        format!("oldest {}", span(state.snapshot_seconds)),
        "end the session that holds it (pg_stat_activity, oldest xact_start); dead rows slow every claim",
    ));
    checks.push(count(
        "capability",
        state.incapable,
        "requests no worker can perform",
        "deploy a worker that reads their kind and version",
    ));
    checks.push(count(
        "parked",
        state.parked,
        "entries and deliveries set aside",
        "read backline.v_parked for the reasons",
    ));
    checks.push(count(
        "manual",
        state.manual,
        "operations only a person can decide",
        "`backline ops ls --state manual`",
    ));
    checks.push(count("dead", state.dead, "operations that stopped", "`backline ops ls --state dead`"));
    checks.push(match state.pauses {
        None => Check::ok("pauses", "none"),
        Some(pauses) => Check::warn("pauses", pauses.join("; "), "`backline resume` when the reason is gone"),
    });
    Ok(checks)
}

fn count(name: &'static str, count: i64, what: &str, advice: &str) -> Check {
    match count {
        0 => Check::ok(name, "none"),
        count => Check::warn(name, format!("{count} {what}"), advice),
    }
}
