//! One claim round: fold committed requests, then claim what is ready, in one transaction.

use crate::Error;
use crate::claim::fold::{fold, mark};
use crate::claim::trail::Trail;
use crate::claim::{Claim, ClaimedRow, LeaseKeeper, SerialKeys};
use backline_failure::Deadline;
use backline_outbox::run_tx;
use sqlx::{PgConnection, PgPool};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use time::OffsetDateTime;
use tokio::time::Instant;
use uuid::Uuid;

/// Requests folded by one round, whatever capacity is free: lanes are fair between tenants, intake is in order of
/// arrival, so nobody's requests may wait there for the execution of somebody else's.
const FOLD: i32 = 500;
/// Lanes visited by one round: few while they fill it, so that a second round finds others and each costs little; more,
/// by doubling, while tenants have less than their share to do.
const LANES: std::ops::RangeInclusive<i64> = 16..=64;
/// How often a round ignores the low marks: the truth behind them (architecture, "low mark").
const UNMARKED_EVERY: Duration = Duration::from_secs(15);

/// Claims for one process.
#[derive(Debug)]
pub(crate) struct Claimer {
    pub(crate) pool: PgPool,
    pub(crate) kinds: Vec<String>,
    /// Per kind, in the order of `kinds`: attempts after which an unknown is looked up instead of repeated.
    pub(crate) repeats: Vec<i32>,
    pub(crate) owner: String,
    pub(crate) keeper: LeaseKeeper,
    keys: SerialKeys,
    trail: Mutex<Trail>,
    started: Instant,
    unmarked_at: AtomicU64,
    /// Lanes that the next round visits, within [`LANES`].
    lanes: AtomicI64,
}

/// What a round found.
#[derive(Debug, Default)]
pub(crate) struct Round {
    pub(crate) folded: usize,
    pub(crate) claims: Vec<Claim>,
}

type LaneKey = (String, Uuid, i16);

struct Lane {
    kind: String,
    organization: Uuid,
    priority: i16,
    mark_due: OffsetDateTime,
    mark_id: Uuid,
    quota: i32,
}

/// Refuses to claim in a life of the database that nobody has adopted.
async fn same_incarnation(tx: &mut PgConnection) -> Result<(), Error> {
    if sqlx::query_file_scalar!("sql/same_incarnation.sql").fetch_one(tx).await? {
        Ok(())
    } else {
        Err(Error::Incarnation)
    }
}

impl Claimer {
    pub(crate) fn new(
        pool: PgPool,
        kinds: Vec<String>,
        repeats: Vec<i32>,
        owner: String,
        keeper: LeaseKeeper,
        keys: SerialKeys,
        commit_lag: Duration,
    ) -> Self {
        let started = Instant::now();
        Self {
            pool,
            kinds,
            repeats,
            owner,
            keeper,
            keys,
            trail: Mutex::new(Trail::new(commit_lag)),
            started,
            unmarked_at: AtomicU64::new(0),
            lanes: AtomicI64::new(*LANES.end()),
        }
    }

    /// Claims up to `limit` ready operations, after folding requests (at least [`FOLD`], whatever the limit).
    pub(crate) async fn ready(&self, limit: usize) -> Result<Round, Error> {
        let limit = i32::try_from(limit).unwrap_or(i32::MAX);
        let now = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX) + 1;
        let last = self.unmarked_at.load(Ordering::Relaxed);
        let unmarked =
            last == 0 || now - last > u64::try_from(UNMARKED_EVERY.as_millis()).unwrap_or(u64::MAX);
        let nonce: i64 = rand::random();
        // Read before the statement is sent: the local end is never later than the database's.
        let until = Deadline::after(self.keeper.duration);
        let marks = self.trail().due(Instant::now());
        let (folded, highest, (rows, capped)) = run_tx!(&self.pool, "claim", |tx| async {
            let (folded, highest) =
                fold(tx, &self.kinds, i64::from(limit.max(FOLD)), unmarked, &self.keys).await?;
            mark(tx, &marks, unmarked).await?;
            let rows = self.claim(tx, limit, unmarked, nonce).await?;
            Ok::<_, Error>((folded, highest, rows))
        })?;
        self.trail().note(Instant::now(), highest);
        if unmarked {
            self.unmarked_at.store(now, Ordering::Relaxed);
        }
        Ok(Round { folded, claims: self.hold(rows, nonce, until, &capped) })
    }

    /// Claims up to `limit` unknown operations that are due, to repeat or to look up.
    pub(crate) async fn unknown(&self, limit: usize) -> Result<Vec<Claim>, Error> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let nonce: i64 = rand::random();
        let until = Deadline::after(self.keeper.duration);
        let rows = run_tx!(&self.pool, "claim_unknown", |tx| async {
            same_incarnation(tx).await?;
            let rows = sqlx::query_file_as!(
                ClaimedRow,
                "sql/claim_unknown.sql",
                &self.kinds,
                limit,
                self.keeper.process,
                self.owner,
                self.lease_ms(),
                nonce,
                &self.repeats,
            )
            .fetch_all(&mut *tx)
            .await?;
            Ok::<_, Error>(rows)
        })?;
        Ok(self.hold(rows, nonce, until, &HashSet::new()))
    }

    fn trail(&self) -> std::sync::MutexGuard<'_, Trail> {
        self.trail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lease_ms(&self) -> i64 {
        i64::try_from(self.keeper.duration.as_millis()).unwrap_or(i64::MAX)
    }

    async fn claim(
        &self,
        tx: &mut PgConnection,
        limit: i32,
        unmarked: bool,
        nonce: i64,
    ) -> Result<(Vec<ClaimedRow>, HashSet<LaneKey>), Error> {
        let visit = self.lanes.load(Ordering::Relaxed).min(i64::from(limit));
        let locked =
            sqlx::query_file!("sql/lock_lanes.sql", &self.kinds, visit, unmarked).fetch_all(&mut *tx).await?;
        let Ok(count) = i32::try_from(locked.len()) else { return Ok(Default::default()) };
        if count == 0 {
            return Ok(Default::default());
        }
        if locked.iter().any(|row| !row.same) {
            return Err(Error::Incarnation);
        }
        // Rounds up, so that few lanes still fill the batch; the batch may exceed the limit by a lane's rounding,
        // which `left` takes back.
        let share = limit.saturating_add(count - 1) / count;
        let mut left = limit;
        let mut lanes = Vec::with_capacity(locked.len());
        let mut capped = HashSet::new();
        for row in locked {
            let quota = share.min(left).min(row.room.unwrap_or(i32::MAX));
            left -= quota;
            if row.room.is_some() {
                capped.insert((row.kind.clone(), row.organization, row.priority));
            }
            lanes.push(Lane {
                kind: row.kind,
                organization: row.organization,
                priority: row.priority,
                mark_due: row.mark_due,
                mark_id: if unmarked { Uuid::nil() } else { row.mark_id },
                quota,
            });
        }
        let kinds: Vec<String> = lanes.iter().map(|lane| lane.kind.clone()).collect();
        let organizations: Vec<Uuid> = lanes.iter().map(|lane| lane.organization).collect();
        let priorities: Vec<i16> = lanes.iter().map(|lane| lane.priority).collect();
        let mark_due: Vec<OffsetDateTime> = lanes.iter().map(|lane| lane.mark_due).collect();
        let mark_id: Vec<Uuid> = lanes.iter().map(|lane| lane.mark_id).collect();
        let quotas: Vec<i32> = lanes.iter().map(|lane| lane.quota).collect();
        let rows = sqlx::query_file_as!(
            ClaimedRow,
            "sql/claim.sql",
            &kinds,
            &organizations,
            &priorities,
            &mark_due,
            &mark_id,
            &quotas,
            self.keeper.process,
            self.owner,
            self.lease_ms(),
            nonce,
        )
        .fetch_all(&mut *tx)
        .await?;
        let mut claimed: HashMap<(&str, Uuid, i16), i32> = HashMap::with_capacity(lanes.len());
        for row in &rows {
            *claimed.entry((row.kind.as_str(), row.organization, row.priority)).or_default() += 1;
        }
        let claimed: Vec<i32> = lanes
            .iter()
            .map(|lane| {
                claimed.get(&(lane.kind.as_str(), lane.organization, lane.priority)).copied().unwrap_or(0)
            })
            .collect();
        sqlx::query_file!(
            "sql/settle_lanes.sql",
            &kinds,
            &organizations,
            &priorities,
            &mark_due,
            &mark_id,
            &claimed
        )
        .execute(&mut *tx)
        .await?;
        if rows.len() >= usize::try_from(limit).unwrap_or(usize::MAX) {
            self.lanes.store((visit / 2).max(*LANES.start()), Ordering::Relaxed);
        } else if i64::from(count) == visit {
            self.lanes.store((visit * 2).clamp(*LANES.start(), *LANES.end()), Ordering::Relaxed);
        }
        Ok((rows, capped))
    }

    fn hold(
        &self,
        rows: Vec<ClaimedRow>,
        nonce: i64,
        until: Deadline,
        capped: &HashSet<LaneKey>,
    ) -> Vec<Claim> {
        let Some(lease) = rows.first().map(|row| row.lease_id) else { return Vec::new() };
        let shares = self.keeper.adopt(lease, rows.len(), until);
        let in_capped_lane = |row: &ClaimedRow| {
            !capped.is_empty() && capped.contains(&(row.kind.clone(), row.organization, row.priority))
        };
        rows.into_iter()
            .zip(shares)
            .map(|(row, share)| {
                let capped = in_capped_lane(&row);
                Claim::new(row, nonce, share, capped)
            })
            .collect()
    }
}
