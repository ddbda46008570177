//! The ceiling of the cycle: claim and finish in prepared SQL, nothing else.

use super::bed::{Bed, begin, commit, real};
use sqlx::postgres::PgConnection;
use sqlx::{Connection, Row};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use time::OffsetDateTime;
use uuid::Uuid;

/// How a bare drain is driven.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub(super) batch: i64,
    pub(super) connections: usize,
    /// The design check's one-statement claim instead of the runtime's own statements.
    pub(super) lean: bool,
}

impl Shape {
    /// Everything that is tried before the best is measured.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        [true, false].into_iter().flat_map(|lean| {
            [100, 500].into_iter().flat_map(move |batch| {
                [1, 2].into_iter().map(move |connections| Self { batch, connections, lean })
            })
        })
    }

    pub(super) fn text(self) -> String {
        let Self { batch, connections, lean } = self;
        let what = if lean { "design check's claim" } else { "runtime's own statements" };
        format!("{what}, batch {batch}, {connections} connections")
    }
}

/// What a finish needs.
#[derive(Default)]
pub(super) struct Claimed {
    pub(super) id: Vec<Uuid>,
    pub(super) token: Vec<i64>,
    pub(super) lease: Vec<i64>,
}

impl Claimed {
    /// Each operation by itself.
    pub(super) fn singles(&self) -> impl Iterator<Item = Self> {
        self.id.iter().zip(&self.token).zip(&self.lease).map(|((id, token), lease)| Self {
            id: vec![*id],
            token: vec![*token],
            lease: vec![*lease],
        })
    }
}

const NONCE: i64 = 7;

/// Claims and finishes all ready operations of `kind`; operations per second.
pub(super) async fn drain(bed: &Bed, kind: &'static str, count: i64, shape: Shape) -> anyhow::Result<f64> {
    let done = Arc::new(AtomicI64::new(0));
    let mut connections = Vec::new();
    for _ in 0..shape.connections {
        connections.push(bed.steady_connection().await?);
    }
    let from = bed.now().await?;
    let mut tasks = tokio::task::JoinSet::new();
    for mut connection in connections {
        let done = Arc::clone(&done);
        tasks.spawn(async move {
            while done.load(Ordering::Relaxed) < count {
                let claimed = claim(&mut connection, kind, shape).await?;
                finish(&mut connection, &claimed).await?;
                done.fetch_add(i64::try_from(claimed.id.len())?, Ordering::Relaxed);
                if claimed.id.is_empty() {
                    tokio::task::yield_now().await;
                }
            }
            anyhow::Ok(connection.close().await?)
        });
    }
    while let Some(task) = tasks.join_next().await {
        task??;
    }
    Ok(real(count) / (bed.last_finish().await? - from))
}

pub(super) async fn claim(
    connection: &mut PgConnection,
    kind: &str,
    shape: Shape,
) -> anyhow::Result<Claimed> {
    if shape.lean {
        let query = sqlx::query(include_str!("sql/bare_claim.sql"));
        let rows = query.bind(kind).bind(shape.batch / 10).bind(Uuid::nil()).bind(NONCE);
        return take(rows.fetch_all(connection).await?, "input", "token", "lease_id");
    }
    begin(connection).await?;
    let kinds = vec![kind.to_owned()];
    let lanes = sqlx::query(include_str!("../../../runtime/sql/lock_lanes.sql"));
    let lanes = lanes.bind(&kinds).bind(shape.batch.min(64)).bind(false).fetch_all(&mut *connection).await?;
    if lanes.is_empty() {
        commit(connection).await?;
        return Ok(Claimed::default());
    }
    let share = i32::try_from(shape.batch / i64::try_from(lanes.len())?)?.max(1);
    let mut column = Lanes::default();
    for row in &lanes {
        column.kind.push(row.try_get("kind")?);
        column.organization.push(row.try_get("organization")?);
        column.priority.push(row.try_get("priority")?);
        column.mark_due.push(row.try_get("mark_due!")?);
        column.mark_id.push(row.try_get("mark_id")?);
        column.quota.push(share);
    }
    let query = sqlx::query(include_str!("../../../runtime/sql/claim.sql"));
    let query =
        query.bind(&column.kind).bind(&column.organization).bind(&column.priority).bind(&column.mark_due);
    let query =
        query.bind(&column.mark_id).bind(&column.quota).bind(Uuid::nil()).bind("bare").bind(30_000_i64);
    let rows = query.bind(NONCE).fetch_all(&mut *connection).await?;
    let settle = sqlx::query(include_str!("../../../runtime/sql/settle_lanes.sql"));
    let settle =
        settle.bind(&column.kind).bind(&column.organization).bind(&column.priority).bind(&column.mark_due);
    // Claimed counts matter to capped lanes only, and there are none.
    settle.bind(&column.mark_id).bind(&column.quota).execute(&mut *connection).await?;
    commit(connection).await?;
    take(rows, "input!", "token!", "lease_id!")
}

#[derive(Default)]
struct Lanes {
    kind: Vec<String>,
    organization: Vec<Uuid>,
    priority: Vec<i16>,
    mark_due: Vec<OffsetDateTime>,
    mark_id: Vec<Uuid>,
    quota: Vec<i32>,
}

fn take(rows: Vec<sqlx::postgres::PgRow>, input: &str, token: &str, lease: &str) -> anyhow::Result<Claimed> {
    let mut claimed = Claimed::default();
    for row in rows {
        // A handler would want it: decoding it is part of the work.
        let input: String = row.try_get(input)?;
        std::hint::black_box(&input);
        claimed.id.push(row.try_get("id")?);
        claimed.token.push(row.try_get(token)?);
        claimed.lease.push(row.try_get(lease)?);
    }
    Ok(claimed)
}

/// Finishes a claimed batch, lets its waiters go on, and drops its lease.
async fn finish(connection: &mut PgConnection, claimed: &Claimed) -> anyhow::Result<()> {
    if claimed.id.is_empty() {
        return Ok(());
    }
    begin(connection).await?;
    finish_rows(connection, claimed).await?;
    let leases = &claimed.lease[..1];
    sqlx::query("delete from backline.lease where id = any($1)")
        .bind(leases)
        .execute(&mut *connection)
        .await?;
    commit(connection).await?;
    Ok(())
}

/// The finish statement and the promotion of waiters, in the caller's transaction.
pub(super) async fn finish_rows(connection: &mut PgConnection, claimed: &Claimed) -> anyhow::Result<()> {
    let count = claimed.id.len();
    let query = sqlx::query(include_str!("../../../runtime/sql/finish.sql"));
    let query = query.bind(&claimed.id).bind(&claimed.token).bind(vec![NONCE; count]).bind(&claimed.lease);
    let query = query.bind(vec!["succeeded"; count]).bind(vec![None::<String>; count]);
    let query = query.bind(vec![None::<String>; count]).bind(vec![r#"{"ok": true, "bytes": 1234}"#; count]);
    let rows = query.fetch_all(&mut *connection).await?;
    let (mut organizations, mut keys) = (Vec::<Uuid>::new(), Vec::<String>::new());
    for row in rows {
        if let Some(key) = row.try_get("serial_key")? {
            organizations.push(row.try_get("organization")?);
            keys.push(key);
        }
    }
    if !keys.is_empty() {
        let query = sqlx::query(include_str!("../../../runtime/sql/promote_waiting.sql"));
        query.bind(&organizations).bind(&keys).execute(&mut *connection).await?;
    }
    Ok(())
}
