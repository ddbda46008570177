//! Leases of lanes.

use super::DrainError;
use crate::run_tx;
use sqlx::PgPool;
use std::time::Duration;

/// The right to publish one lane for a while; compared on every write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneHold {
    /// Lane number.
    pub lane: i16,
    /// Rises with every taking.
    pub token: i64,
    /// Made by the taker: a sequence that was rewound by a failover cannot revive a stopped relay.
    pub nonce: i64,
}

/// A lane that was taken.
#[derive(Clone, Copy, Debug)]
pub struct TakenLane {
    /// The right to publish it.
    pub hold: LaneHold,
    /// Reading starts behind this number.
    pub mark: i64,
    /// When it was last scanned from the beginning, in seconds since 1970; handed back with the new mark.
    pub scanned_at: f64,
}

/// Takes up to `limit` free lanes that have something to publish, those that waited longest first.
///
/// Entries of `paused_topics` do not count as something to publish.
///
/// # Errors
/// The database's error.
pub async fn take_lanes(
    pool: &PgPool,
    limit: usize,
    owner: &str,
    lease: Duration,
    paused_topics: &[String],
) -> Result<Vec<TakenLane>, DrainError> {
    let nonce: i64 = rand::random();
    let limit = i64::try_from(limit).unwrap_or(64);
    run_tx!(pool, "relay.take", |tx| async {
        let query =
            sqlx::query_file!("sql/take_lanes.sql", limit, owner, nonce, lease.as_secs_f64(), paused_topics);
        let taken = query.fetch_all(tx).await?.into_iter().map(|row| TakenLane {
            hold: LaneHold { lane: row.lane, token: row.token, nonce: row.nonce },
            mark: row.mark_seq,
            scanned_at: row.scanned_at,
        });
        Ok::<_, DrainError>(taken.collect())
    })
}

/// Looks at lanes from their beginning where the last such look is older than `every`, and lowers marks below which
/// something waits. Finds what committed later than producers promised. Returns how many lanes it looked at.
///
/// # Errors
/// The database's error.
pub async fn rescan_lanes(pool: &PgPool, every: Duration) -> Result<u64, DrainError> {
    if backline_crash_point::seeded_bug(3) {
        return Ok(0);
    }
    run_tx!(pool, "relay.rescan", |tx| async {
        let done = sqlx::query_file!("sql/rescan_lanes.sql", every.as_secs_f64()).execute(tx).await?;
        Ok::<_, DrainError>(done.rows_affected())
    })
}

/// Lengthens the leases of all lanes held, in one statement, and returns the lanes that are still held.
///
/// # Errors
/// The database's error.
pub async fn renew_lanes(pool: &PgPool, holds: &[LaneHold], lease: Duration) -> Result<Vec<i16>, DrainError> {
    let lanes: Vec<i16> = holds.iter().map(|hold| hold.lane).collect();
    let tokens: Vec<i64> = holds.iter().map(|hold| hold.token).collect();
    let nonces: Vec<i64> = holds.iter().map(|hold| hold.nonce).collect();
    run_tx!(pool, "relay.renew", |tx| async {
        let query =
            sqlx::query_file_scalar!("sql/renew_lanes.sql", &lanes, &tokens, &nonces, lease.as_secs_f64());
        Ok(query.fetch_all(tx).await?)
    })
}

/// Gives a lane back; its next reading starts behind `mark`, unless it was scanned from the beginning meanwhile.
///
/// # Errors
/// [`DrainError::Fenced`] when the lane was lost meanwhile, else the database's error.
pub async fn release_lane(pool: &PgPool, taken: &TakenLane, mark: i64) -> Result<(), DrainError> {
    let LaneHold { lane, token, nonce } = taken.hold;
    run_tx!(pool, "relay.release", |tx| async {
        let query = sqlx::query_file!("sql/release_lane.sql", lane, token, nonce, mark, taken.scanned_at);
        if query.execute(tx).await?.rows_affected() == 1 { Ok(()) } else { Err(DrainError::Fenced) }
    })
}

/// The highest number given to an entry so far, committed or not.
///
/// # Errors
/// The database's error.
pub async fn horizon(pool: &PgPool) -> Result<i64, DrainError> {
    run_tx!(pool, "relay.horizon", |tx| async {
        Ok::<_, DrainError>(sqlx::query_file_scalar!("sql/horizon.sql").fetch_one(tx).await?)
    })
}
