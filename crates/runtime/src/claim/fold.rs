//! Accepting: committed requests become operations, from intake or from a sealed delivery.

use crate::Error;
use crate::claim::{MadeReady, SerialKeys, lower};
use sqlx::PgConnection;
use std::collections::BTreeMap;
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
/// truth behind the mark. Returns how many were taken, and the highest sequence number by kind.
pub(crate) async fn fold(
    tx: &mut PgConnection,
    kinds: &[String],
    limit: i64,
    unmarked: bool,
    keys: &SerialKeys,
) -> Result<(usize, BTreeMap<String, i64>), Error> {
    let mut rows =
        sqlx::query_file!("sql/take_intake.sql", kinds, limit, unmarked).fetch_all(&mut *tx).await?;
    let mut highest: BTreeMap<String, i64> = BTreeMap::new();
    rows.sort_unstable_by_key(|row| row.seq);
    for row in &rows {
        match highest.get_mut(&row.kind) {
            Some(seq) => *seq = row.seq,
            None => drop(highest.insert(row.kind.clone(), row.seq)),
        }
    }
    let taken = rows.len();
    let mut requests: Vec<Request> = rows
        .into_iter()
        .map(|row| Request {
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
        })
        .collect();
    keys.apply(&mut requests);
    accept(tx, requests).await?;
    Ok((taken, highest))
}

/// Sets the marks behind which nothing is scanned except by the unmarked scan.
pub(crate) async fn mark(
    tx: &mut PgConnection,
    marks: &BTreeMap<String, i64>,
    unmarked: bool,
) -> Result<(), sqlx::Error> {
    if marks.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = marks.keys().cloned().collect();
    let seqs: Vec<i64> = marks.values().copied().collect();
    sqlx::query_file!("sql/mark_intake.sql", &names, &seqs, unmarked).execute(tx).await?;
    Ok(())
}

/// Accepts requests, oldest first, in the caller's transaction. Of a command asked for twice the first wins; of a
/// desired state the newest input wins and every request is a generation.
pub(crate) async fn accept(tx: &mut PgConnection, requests: Vec<Request>) -> Result<(), Error> {
    if requests.is_empty() {
        return Ok(());
    }
    let mut merged: BTreeMap<Uuid, Merged> = BTreeMap::new();
    for (order, request) in requests.into_iter().enumerate() {
        match merged.entry(request.id) {
            std::collections::btree_map::Entry::Vacant(entry) => {
                let delay = request.delay_ms.unwrap_or(0);
                let (soonest, latest) = (delay, delay);
                entry.insert(Merged { order, requests: 1, newest: None, soonest, latest, first: request });
            }
            std::collections::btree_map::Entry::Occupied(mut entry) => {
                let merged = entry.get_mut();
                merged.requests += 1;
                let delay = request.delay_ms.unwrap_or(0);
                merged.soonest = merged.soonest.min(delay);
                merged.latest = merged.latest.max(delay);
                merged.newest = Some(request.input);
            }
        }
    }
    let mut rows: Vec<Merged> = merged.into_values().collect();
    rows.sort_by_key(|row| row.order);
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
        &column.newest,
        &column.soonest,
        &column.latest,
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

/// Requests of one batch for one operation.
struct Merged {
    /// Place of the first in the batch.
    order: usize,
    requests: i64,
    /// Input of the last, where there were several: a desired state's ids as asked for most recently.
    newest: Option<String>,
    /// Delays that were asked for, in milliseconds: a desired state is looked at after the first and after the last.
    soonest: i64,
    latest: i64,
    first: Request,
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
    newest: Vec<String>,
    soonest: Vec<i64>,
    latest: Vec<i64>,
}

impl Columns {
    fn from(rows: &[Merged]) -> Self {
        let mut columns = Self::default();
        for merged in rows {
            let row = &merged.first;
            columns.newest.push(merged.newest.clone().unwrap_or_else(|| row.input.clone()));
            columns.soonest.push(merged.soonest);
            columns.latest.push(merged.latest);
            columns.id.push(row.id);
            columns.kind.push(row.kind.clone());
            columns.organization.push(row.organization);
            columns.project.push(row.project);
            columns.operation_key.push(row.operation_key.clone());
            columns.input.push(row.input.clone());
            columns.input_version.push(row.input_version);
            columns.requests.push(merged.requests);
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
