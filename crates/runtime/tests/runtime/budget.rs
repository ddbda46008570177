//! A provider's budget counts requests: each takes a unit, waits while there is none, and slows down with the fleet.

use crate::handlers::{Told, channel};
use crate::support::{Running, SOON, config, enqueue, session};
use anyhow::{Context, Result, ensure};
use backline_failure::{Call, Failure, Mode};
use backline_runtime::{KindSpec, Operation, ProviderBudget, Read, Reconcile, Step, Workload};
use serde_json::Value;
use sqlx::{PgConnection, PgPool};
use std::time::Duration;
use tokio::sync::mpsc;

const ACCOUNT: &str = "test:counted";
/// So slow that a test ends before a unit comes back.
const RATE: f64 = 0.001;

#[derive(Debug, PartialEq, Eq)]
enum Said {
    Asks(usize),
    Sends(usize),
}

/// Takes several requests, and hears after the first that it should slow down.
struct Many {
    requests: usize,
    throttled: Option<Failure>,
    says: mpsc::UnboundedSender<Said>,
}

impl Many {
    fn new(requests: usize, throttled: Option<Failure>) -> (Self, Told<Said>) {
        let (says, told) = channel();
        (Self { requests, throttled, says }, told)
    }
}

impl Reconcile for Many {
    const KIND: &'static str = "test.many";
    const RECORDS: bool = false;
    type Input = Value;
    type Desired = ();
    type Output = usize;

    fn spec(&self) -> KindSpec {
        KindSpec { request_timeout: Duration::from_secs(1), ..KindSpec::new(Mode::Reconcile, ACCOUNT) }
    }

    async fn read(&self, _: &mut PgConnection, _: &Operation, _: &Value) -> Result<Read<()>, sqlx::Error> {
        Ok(Read::Desired(()))
    }

    async fn converge(&self, call: &Call, _: &Value, _: &()) -> Result<Step<usize>, Failure> {
        for n in 1..=self.requests {
            let _gone = self.says.send(Said::Asks(n));
            let _permit = call.admit().await?;
            let _gone = self.says.send(Said::Sends(n));
            if let (1, Some(failure)) = (n, &self.throttled) {
                call.heed(failure).await;
            }
        }
        match &self.throttled {
            Some(failure) => Err(failure.clone()),
            None => Ok(Step::Done(self.requests)),
        }
    }
}

/// Starts it with as many units as `burst`, and asks for one operation.
async fn begin(pool: &PgPool, handler: Many, burst: f64, lease: Duration) -> Result<Running> {
    let budget = ProviderBudget { rate: RATE, burst, concurrency: 1 };
    let workload = Workload::new("test", config(pool, lease)?).budget(ACCOUNT, budget).reconcile(handler);
    let eager = workload.eager();
    let running = Running::start(workload);
    enqueue(pool, Many::KIND, "many").await?;
    eager.committed();
    Ok(running)
}

/// Polls until `sql`, a condition, holds.
async fn holds(pool: &PgPool, sql: &'static str) -> Result<()> {
    let poll = async {
        while !sqlx::query_scalar::<_, bool>(sql).fetch_one(pool).await? {
            tokio::task::yield_now().await;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(SOON, poll).await.with_context(|| format!("never: {sql}"))?
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn an_attempt_of_five_requests_takes_five_units(pool: PgPool) -> Result<()> {
    let (handler, told) = Many::new(5, None);
    // One place in flight is enough: nobody keeps it between two requests.
    let running = begin(&pool, handler, 7.0, Duration::from_secs(30)).await?;
    for n in 1..=5 {
        assert_eq!((told.next().await?, told.next().await?), (Said::Asks(n), Said::Sends(n)));
    }
    holds(&pool, "select exists (select from backline.operation_history where outcome = 'succeeded')")
        .await?;
    let left: f64 =
        sqlx::query_scalar("select tokens from backline.provider_budget").fetch_one(&pool).await?;
    ensure!((2.0..2.5).contains(&left), "{left} of 7 units are left");
    running.stop().await
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn a_request_that_waits_past_the_deadline_is_not_sent_and_costs_no_attempt(pool: PgPool) -> Result<()> {
    let (handler, told) = Many::new(3, None);
    let running = begin(&pool, handler, 2.0, Duration::from_secs(3)).await?;
    for n in 1..=2 {
        assert_eq!((told.next().await?, told.next().await?), (Said::Asks(n), Said::Sends(n)));
    }
    assert_eq!(told.next().await?, Said::Asks(3));
    // The heartbeat waits behind this lock, so the deadline comes.
    let mut lock = session(&pool).await?;
    sqlx::raw_sql("begin; select from backline.lease for update").execute(&mut lock).await?;
    let over = "select (extract(epoch from until - clock_timestamp())) < 1 from backline.lease";
    holds(&pool, over).await?;
    drop(lock);
    holds(&pool, "select exists (select from backline.operation where failure_code = 'budget_waited_too_long' and state = 'ready' and attempt = 0)").await?;
    let rate = "select current_rate = rate_per_second from backline.provider_budget";
    ensure!(sqlx::query_scalar::<_, bool>(rate).fetch_one(&pool).await?, "waiting is no throttling");
    running.stop().await
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn a_throttled_answer_holds_the_next_request_of_the_same_attempt(pool: PgPool) -> Result<()> {
    let slow = Failure::throttled("test.slow").with_retry_after(Duration::from_secs(3600));
    let (handler, told) = Many::new(2, Some(slow));
    let running = begin(&pool, handler, 9.0, Duration::from_secs(30)).await?;
    assert_eq!((told.next().await?, told.next().await?), (Said::Asks(1), Said::Sends(1)));
    assert_eq!(told.next().await?, Said::Asks(2));
    holds(&pool, "select paused_until > clock_timestamp() and current_rate < rate_per_second from backline.provider_budget").await?;
    // The pause is lifted; nothing else lets the second request go.
    let lift = "update backline.provider_budget set paused_until = null, lowered_at = null, current_rate = rate_per_second, tokens = 9";
    sqlx::query(lift).execute(&pool).await?;
    assert_eq!(told.next().await?, Said::Sends(2));
    holds(&pool, "select exists (select from backline.operation where failure_code = 'test.slow' and state = 'ready' and attempt = 0)").await?;
    let told_once = "select lowered_at is null from backline.provider_budget";
    ensure!(
        sqlx::query_scalar::<_, bool>(told_once).fetch_one(&pool).await?,
        "one answer slowed the fleet twice"
    );
    running.stop().await
}
