//! The ceiling of `converge`: requests folded into generations in prepared SQL, with nobody who performs anything.

use super::bed::{Bed, begin, commit, real};
use super::bumps::{self, Way};
use super::provider::Follow;
use backline_runtime::Reconcile;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{Connection, Row};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use time::OffsetDateTime;
use uuid::Uuid;

/// A folder that found less than a batch lets the next one gather for this long.
const GATHER: Duration = Duration::from_millis(20);

/// How the requests are folded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    batch: i64,
    connections: usize,
}

impl Shape {
    /// Everything that is tried before the best is measured.
    pub(super) const ALL: [Self; 4] = [
        Self { batch: 100, connections: 1 },
        Self { batch: 100, connections: 2 },
        Self { batch: 500, connections: 1 },
        Self { batch: 500, connections: 2 },
    ];

    pub(super) fn text(self) -> String {
        format!("batch {}, {} connections", self.batch, self.connections)
    }
}

/// Bumps per second, from the first request until the last is part of a generation.
pub(super) async fn rate(bed: &Bed, time: Duration, shape: Shape) -> anyhow::Result<f64> {
    bed.reset().await?;
    bed.settle().await?;
    let over = Arc::new(AtomicBool::new(false));
    let mut folders = tokio::task::JoinSet::new();
    for _ in 0..shape.connections {
        let (over, mut connection) = (Arc::clone(&over), bed.steady_connection().await?);
        folders.spawn(async move {
            loop {
                // Asked before the look: what was committed until then, the look finds.
                let last = over.load(Ordering::Acquire);
                let taken = fold(&mut connection, shape.batch).await?;
                if last && taken == 0 {
                    return anyhow::Ok(connection.close().await?);
                }
                if !last && taken < shape.batch {
                    tokio::time::sleep(GATHER).await;
                }
            }
        });
    }
    let (bumps, seconds) = bumps::during(bed, time, Way::Bare, async || {
        over.store(true, Ordering::Release);
        while let Some(folder) = folders.join_next().await {
            folder??;
        }
        Ok(())
    })
    .await?;
    let generations = "select coalesce(sum(last_generation), 0)::float8 from backline.operation_identity";
    let generations = bed.number(generations).await?;
    anyhow::ensure!(generations == real(bumps), "bare: {bumps} bumps became {generations} generations");
    Ok(real(bumps) / seconds)
}

/// One round of the runtime's own statements, without its claim; how many requests it took.
async fn fold(connection: &mut PgConnection, batch: i64) -> anyhow::Result<i64> {
    let kinds = vec![Follow::KIND.to_owned()];
    begin(connection).await?;
    let take = sqlx::query(include_str!("../../../runtime/sql/take_intake.sql"));
    let rows = take.bind(&kinds).bind(batch).bind(false).fetch_all(&mut *connection).await?;
    if !rows.is_empty() {
        let column = Columns::merged(&rows)?;
        accept(connection, &column).await?;
    }
    commit(connection).await?;
    Ok(i64::try_from(rows.len())?)
}

/// The requests of a round, one row for each operation.
#[derive(Default)]
struct Columns {
    id: Vec<Uuid>,
    organization: Vec<Uuid>,
    key: Vec<String>,
    input: Vec<String>,
    requests: Vec<i64>,
}

impl Columns {
    fn merged(rows: &[PgRow]) -> anyhow::Result<Self> {
        let mut column = Self::default();
        let mut places: BTreeMap<Uuid, usize> = BTreeMap::new();
        for row in rows {
            let id: Uuid = row.try_get("operation_id")?;
            if let Some(requests) = places.get(&id).and_then(|at| column.requests.get_mut(*at)) {
                *requests += 1;
                continue;
            }
            places.insert(id, column.id.len());
            column.id.push(id);
            column.organization.push(row.try_get("organization")?);
            column.key.push(row.try_get("operation_key")?);
            // All requests for a state carry the same input here; the runtime takes the newest.
            column.input.push(row.try_get("input!")?);
            column.requests.push(1);
        }
        Ok(column)
    }
}

async fn accept(connection: &mut PgConnection, column: &Columns) -> anyhow::Result<()> {
    let count = column.id.len();
    let serial: Vec<String> = column.key.iter().map(|key| format!("bench:{key}")).collect();
    let query = sqlx::query(include_str!("../../../runtime/sql/accept_operations.sql"));
    let query = query.bind(&column.id).bind(vec![Follow::KIND; count]).bind(&column.organization);
    let query = query.bind(vec![None::<Uuid>; count]).bind(&column.key).bind(&column.input);
    let query = query.bind(vec![1_i32; count]).bind(&column.requests).bind(vec![None::<i64>; count]);
    let query = query.bind(vec![None::<OffsetDateTime>; count]).bind(&serial).bind(vec![0_i16; count]);
    let query = query.bind(&column.id).bind(vec![None::<Uuid>; count]).bind(vec![None::<String>; count]);
    let query = query.bind(&column.input).bind(vec![0_i64; count]).bind(vec![0_i64; count]);
    let rows = query.fetch_all(&mut *connection).await?;
    let (mut organization, mut due) = (Vec::<Uuid>::new(), Vec::<OffsetDateTime>::new());
    for row in &rows {
        organization.push(row.try_get("organization")?);
        due.push(row.try_get("due_at")?);
    }
    let ready = organization.len();
    let lower = sqlx::query(include_str!("../../../runtime/sql/lower_lanes.sql"));
    let lower = lower.bind(vec![Follow::KIND; ready]).bind(&organization).bind(vec![0_i16; ready]).bind(&due);
    lower.execute(connection).await?;
    Ok(())
}
