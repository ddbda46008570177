//! Accepting: committed requests become operations, from intake or from a sealed delivery.

use crate::Error;
use crate::claim::{MadeReady, lower};
use sqlx::PgConnection;
use std::collections::BTreeMap;
use std::time::Duration;
use time::OffsetDateTime;
use uuid::Uuid;

/// One request for an operation.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) id: Uuid,
    pub(crate) kind: String,
    pub(crate) organization: Uuid,
    pub(crate) project: Option<Uuid>,
    pub(crate) operation_key: String,
    pub(crate) input: String,
    pub(crate) input_version: i32,
    pub(crate) delay_ms: Option<i64>,
    pub(crate) expires_at: Option<OffsetDateTime>,
    pub(crate) serial_key: Option<String>,
    pub(crate) priority: i16,
    pub(crate) correlation_id: Uuid,
    pub(crate) causation_id: Option<Uuid>,
    pub(crate) traceparent: Option<String>,
}

/// Takes up to `limit` requests of `kinds` out of intake and accepts them. `unmarked` scans from the beginning: the
/// truth behind the mark. Returns how many requests were taken.
pub(crate) async fn fold(
    tx: &mut PgConnection,
    kinds: &[String],
    limit: i64,
    unmarked: bool,
    commit_lag: Duration,
) -> Result<usize, Error> {
    let lag = i64::try_from(commit_lag.as_millis()).unwrap_or(i64::MAX);
    let rows = sqlx::query_file!("sql/take_intake.sql", kinds, limit, unmarked, lag).fetch_all(&mut *tx).await?;
    if rows.is_empty() {
        return Ok(0);
    }
    let taken = rows.len();
    // Behind the mark everything is gone and nobody can commit late any more.
    let mut marks: BTreeMap<String, i64> = BTreeMap::new();
    let mut requests: Vec<(i64, Request)> = Vec::with_capacity(taken);
    for row in rows {
        if row.settled {
            let mark = marks.entry(row.kind.clone()).or_insert(row.seq);
            *mark = (*mark).max(row.seq);
        }
        requests.push((
            row.seq,
            Request {
                id: row.operation_id,
                kind: row.kind,
                organization: row.organization,
                project: row.project,
                operation_key: row.operation_key,
                input: row.input,
                input_version: row.input_version,
                delay_ms: row.delay_ms,
                expires_at: row.expires_at,
                serial_key: row.serial_key,
                priority: row.priority,
                correlation_id: row.correlation_id,
                causation_id: row.causation_id,
                traceparent: row.traceparent,
            },
        ));
    }
    requests.sort_by_key(|(seq, _)| *seq);
    accept(tx, requests.into_iter().map(|(_, request)| request).collect()).await?;
    if !marks.is_empty() {
        let (names, seqs): (Vec<String>, Vec<i64>) = marks.into_iter().unzip();
        sqlx::query_file!("sql/mark_intake.sql", &names, &seqs, unmarked).execute(&mut *tx).await?;
    }
    Ok(taken)
}

/// Accepts requests, oldest first, in the caller's transaction. Of a command asked for twice the first wins; of a
/// desired state the newest input wins and every request is a generation.
pub(crate) async fn accept(tx: &mut PgConnection, requests: Vec<Request>) -> Result<(), Error> {
    if requests.is_empty() {
        return Ok(());
    }
    let mut merged: BTreeMap<Uuid, (usize, i64, Request)> = BTreeMap::new();
    for (order, request) in requests.into_iter().enumerate() {
        match merged.entry(request.id) {
            std::collections::btree_map::Entry::Vacant(entry) => {
                entry.insert((order, 1, request));
            }
            std::collections::btree_map::Entry::Occupied(mut entry) => {
                entry.get_mut().1 += 1;
            }
        }
    }
    let mut rows: Vec<(usize, i64, Request)> = merged.into_values().collect();
    rows.sort_by_key(|(order, ..)| *order);
    let column = Columns::from(&rows);
    let accepted = sqlx::query_file!(
        "sql/accept_operations.sql",
        &column.id,
        &column.kind,
        &column.organization,
        &column.project as _,
        &column.operation_key,
        &column.input,
        &column.input_version,
        &column.requests,
        &column.delay_ms as _,
        &column.expires_at as _,
        &column.serial_key as _,
        &column.priority,
        &column.correlation_id,
        &column.causation_id as _,
        &column.traceparent as _,
    )
    .fetch_all(&mut *tx)
    .await?;
    let fifo: Vec<Uuid> = accepted.iter().filter(|row| row.fifo == Some(true)).map(|row| row.id).collect();
    let waiting: Vec<Uuid> = if fifo.is_empty() {
        Vec::new()
    } else {
        sqlx::query_file_scalar!("sql/enter_fifo.sql", &fifo).fetch_all(&mut *tx).await?
    };
    let ready: Vec<MadeReady> = accepted
        .into_iter()
        .filter(|row| row.ready && !waiting.contains(&row.id))
        .map(|row| MadeReady {
            kind: row.kind,
            organization: row.organization,
            priority: row.priority,
            due_at: row.due_at,
        })
        .collect();
    lower(tx, &ready).await?;
    Ok(())
}

/// The statement's arrays.
#[derive(Default)]
struct Columns {
    id: Vec<Uuid>,
    kind: Vec<String>,
    organization: Vec<Uuid>,
    project: Vec<Option<Uuid>>,
    operation_key: Vec<String>,
    input: Vec<String>,
    input_version: Vec<i32>,
    requests: Vec<i64>,
    delay_ms: Vec<Option<i64>>,
    expires_at: Vec<Option<OffsetDateTime>>,
    serial_key: Vec<Option<String>>,
    priority: Vec<i16>,
    correlation_id: Vec<Uuid>,
    causation_id: Vec<Option<Uuid>>,
    traceparent: Vec<Option<String>>,
}

impl Columns {
    fn from(rows: &[(usize, i64, Request)]) -> Self {
        let mut columns = Self::default();
        for (_, requests, row) in rows {
            columns.id.push(row.id);
            columns.kind.push(row.kind.clone());
            columns.organization.push(row.organization);
            columns.project.push(row.project);
            columns.operation_key.push(row.operation_key.clone());
            columns.input.push(row.input.clone());
            columns.input_version.push(row.input_version);
            columns.requests.push(*requests);
            columns.delay_ms.push(row.delay_ms);
            columns.expires_at.push(row.expires_at);
            columns.serial_key.push(row.serial_key.clone());
            columns.priority.push(row.priority);
            columns.correlation_id.push(row.correlation_id);
            columns.causation_id.push(row.causation_id);
            columns.traceparent.push(row.traceparent.clone());
        }
        columns
    }
}
