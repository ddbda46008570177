//! What a call may still send follows its lease, by a local end that is never later than the database's.

use crate::handlers::Long;
use crate::support::{Running, SOON, config, enqueue, session};
use anyhow::{Result, ensure};
use backline_runtime::transition::State;
use backline_runtime::{Reconcile, Status, Workload};
use sqlx::PgPool;
use std::time::Duration;

const LEASE: Duration = Duration::from_secs(3);
/// Renewals come at the same interval, so a slow machine has this much time for one.
const REQUEST: Duration = Duration::from_secs(1);

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn requests_go_on_beyond_the_first_lease_while_it_is_renewed(pool: PgPool) -> Result<()> {
    let (handler, began) = Long::new(6, REQUEST);
    let workload = Workload::new("test", config(&pool, LEASE)?).reconcile(handler);
    let eager = workload.eager();
    let running = Running::start(workload);
    let operation = enqueue(&pool, Long::KIND, "long").await?;
    eager.committed();
    let first = began.next().await?;
    for _ in 1..6 {
        let call = began.next().await?;
        ensure!(call.deadline.remaining() <= LEASE - REQUEST, "a request would outlive the lease");
    }
    let status = eager.outcome(operation, SOON).await;
    let done = Status::Ended { generation: 1, outcome: State::Succeeded, code: None, output: Some(6.into()) };
    ensure!(status == done, "{status:?}");
    ensure!(first.deadline.passed(), "a clone that outlives the attempt sends nothing");
    running.stop().await
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn without_renewals_no_request_starts_past_the_end(pool: PgPool) -> Result<()> {
    let (handler, began) = Long::new(1000, REQUEST);
    let kept = handler.kept.clone();
    let workload = Workload::new("test", config(&pool, LEASE)?).reconcile(handler);
    let eager = workload.eager();
    let running = Running::start(workload);
    let operation = enqueue(&pool, Long::KIND, "long").await?;
    eager.committed();
    let call = began.next().await?;

    // The heartbeat waits behind this lock, and so does the finish.
    let mut lock = session(&pool).await?;
    sqlx::raw_sql("begin; select from backline.lease for update").execute(&mut lock).await?;
    while !call.deadline.passed() {
        ensure!(call.deadline.remaining() <= LEASE - REQUEST, "the deadline moved without a renewal");
        tokio::task::yield_now().await;
    }
    // A request that started at the last moment has its whole time before the database's end of the lease.
    let left = "select (extract(epoch from until - clock_timestamp()) * 1000)::bigint from backline.lease";
    let left: i64 = sqlx::query_scalar(left).fetch_one(&mut lock).await?;
    ensure!(left > 0, "the local end was {left} ms late");
    tokio::time::timeout(SOON, kept.acquire()).await??.forget();
    drop(lock);
    let status = eager.outcome(operation, SOON).await;
    let refused = |code: &Option<String>| code.as_deref() == Some("test.deadline_passed");
    ensure!(
        matches!(&status, Status::Ended { outcome: State::Rejected, code, .. } if refused(code)),
        "{status:?}"
    );
    running.stop().await
}
