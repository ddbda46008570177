//! Checks of the server itself.

use super::check::Check;
use crate::db;
use backline_dev_cluster::pg::OLDEST_MAJOR;
use sqlx::PgPool;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Leases and due times are the database's; a clock that is off only confuses people until it reaches leases' size.
const CLOCK_WARN_SECONDS: f64 = 1.0;
const CLOCK_FAIL_SECONDS: f64 = 30.0;

/// Whether relays and workers may connect as they do by default.
pub(super) async fn sessions(pool: &PgPool) -> Check {
    match db::reach_as_service(pool).await {
        Ok(()) => Check::ok("sessions", "start-up parameters and prepared statements are accepted"),
        Err(error) => Check::warn(
            "sessions",
            error.to_string(),
            "relays and workers do not start on this address before one of these is done",
        ),
    }
}

pub(super) async fn checks(pool: &PgPool) -> sqlx::Result<Vec<Check>> {
    let asked = Instant::now();
    let server = sqlx::query_file!("sql/doctor_server.sql").fetch_one(pool).await?;
    let trip = asked.elapsed().as_secs_f64();
    let major = server.version / 10_000;
    let mut checks = Vec::new();
    checks.push(if u32::try_from(major).is_ok_and(|major| major >= OLDEST_MAJOR) {
        Check::ok("version", format!("PostgreSQL {major}"))
    } else {
        Check::fail("version", format!("PostgreSQL {major}"), format!("upgrade to {OLDEST_MAJOR} or newer"))
    });
    checks.push(match (server.standby, server.read_only) {
        (true, _) => Check::fail("primary", "this is a standby", "point DATABASE_URL at the primary"),
        (_, true) => Check::fail("primary", "read-only", "turn default_transaction_read_only off"),
        _ => Check::ok("primary", "writable"),
    });
    checks.push(match (server.fsync, server.synchronous_commit.as_str()) {
        (false, _) => Check::warn(
            "durability",
            "fsync is off",
            "a loss of power loses acknowledged commits: turn it on",
        ),
        (_, "off") => Check::warn(
            "durability",
            "synchronous_commit is off",
            "a crash loses acknowledged commits: turn it on for producers and workers",
        ),
        (_, commit) => Check::ok("durability", format!("fsync on, synchronous_commit {commit}")),
    });
    checks.push(clocks(server.clock, trip));
    checks.push(match server.missing_roles {
        None => Check::ok("roles", "all four exist"),
        Some(missing) => Check::fail(
            "roles",
            format!("missing: {}", missing.join(", ")),
            "run `backline migrate` as their owner",
        ),
    });
    Ok(checks)
}

/// The difference is known up to the round trip.
fn clocks(database: f64, trip: f64) -> Check {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the comparison of the two clocks; nothing is decided by it"
    )]
    let here = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
    let apart = (here - trip / 2.0 - database).abs();
    let found = format!("{:.0} ms apart from the database's", apart * 1000.0);
    Check::age(
        "clocks",
        apart,
        (CLOCK_WARN_SECONDS, CLOCK_FAIL_SECONDS),
        found,
        "synchronize the clocks (NTP); event ids minted a day off are refused",
    )
}
