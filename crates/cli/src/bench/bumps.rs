//! Producers that change desired states and ask for them, each request in its own committed transaction.

use super::bed::{Bed, begin, commit, organization};
use super::provider::{Follow, State};
use backline_envelope::Payload;
use backline_outbox::NewOperation;
use backline_runtime::Reconcile;
use sqlx::postgres::PgConnection;
use std::time::Duration;
use tokio::time::Instant;
use uuid::Uuid;

/// Desired states: as many as a tenant's open conversations, few enough to be asked for again and again.
pub(super) const STATES: i64 = 50;
pub(super) const PRODUCERS: usize = 8;

/// How a request gets into the intake.
#[derive(Debug, Clone, Copy)]
pub(super) enum Way {
    /// As applications do it.
    Product,
    /// A prepared insert that knows the operation's id.
    Bare,
}

/// One state as its producers know it.
#[derive(Clone)]
struct Subject {
    id: i64,
    operation_id: Uuid,
    request: NewOperation,
}

/// All states at version 0; what is asked for them later.
async fn subjects(bed: &Bed) -> anyhow::Result<Vec<Subject>> {
    let seed = sqlx::query(include_str!("sql/desired.sql"));
    seed.bind(STATES).bind(super::bed::ORGANIZATIONS).execute(&bed.pool).await?;
    let mut subjects = Vec::new();
    for id in 1..=STATES {
        let (organization, key) = (organization(id), id.to_string());
        let name = sqlx::query_scalar("select backline.operation_id($1, $2, $3)");
        let name = name.bind(organization).bind(Follow::KIND).bind(&key).fetch_one(&bed.pool);
        let operation_id = name.await?;
        let request = NewOperation::new(Follow::KIND, organization, key, Payload::encode(&State { id })?);
        subjects.push(Subject { id, operation_id, request });
    }
    Ok(subjects)
}

/// Bumps as fast as the producers can for `time`, then runs `settled`, which waits for what must have happened to them.
/// Committed bumps, and seconds from the first request to the end of `settled`.
pub(super) async fn during(
    bed: &Bed,
    time: Duration,
    way: Way,
    settled: impl AsyncFnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<(i64, f64)> {
    let subjects = subjects(bed).await?;
    let mut connections = Vec::new();
    for _ in 0..PRODUCERS {
        connections.push(bed.connection().await?);
    }
    let started = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for mut connection in connections {
        let subjects = subjects.clone();
        tasks.spawn(async move {
            let mut done = 0;
            while started.elapsed() < time {
                let at = rand::random_range(0..subjects.len());
                let Some(subject) = subjects.get(at) else { break };
                bump(&mut connection, subject, way).await?;
                done += 1;
            }
            anyhow::Ok(done)
        });
    }
    let mut bumps = 0;
    while let Some(task) = tasks.join_next().await {
        bumps += task??;
    }
    settled().await?;
    Ok((bumps, started.elapsed().as_secs_f64()))
}

async fn bump(connection: &mut PgConnection, subject: &Subject, way: Way) -> anyhow::Result<()> {
    let request = &subject.request;
    begin(connection).await?;
    sqlx::query("update bench.desired set version = version + 1 where id = $1")
        .bind(subject.id)
        .execute(&mut *connection)
        .await?;
    match way {
        Way::Product => drop(backline_outbox::enqueue(connection, request).await?),
        Way::Bare => {
            let insert = sqlx::query(include_str!("sql/bare_request.sql")).bind(subject.operation_id);
            let insert = insert.bind(&request.kind).bind(request.organization).bind(&request.operation_key);
            insert.bind(request.input.as_str()).execute(&mut *connection).await?;
        }
    }
    commit(connection).await?;
    Ok(())
}
