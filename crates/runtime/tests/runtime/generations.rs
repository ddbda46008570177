//! A newer request of a desired state waits for nothing that an older one met, and a look that was owed later is made.

use crate::handlers::{Told, channel};
use crate::support::{Running, SOON, config, enqueue};
use anyhow::{Context, Result, ensure};
use backline_failure::{Call, Failure, Mode, Policy};
use backline_runtime::{Conclusion, Error, KindSpec, Operation, Read, Reconcile, Record, Step, Workload};
use serde_json::Value;
use sqlx::{PgConnection, PgPool};
use std::time::Duration;
use tokio::sync::{Mutex, mpsc};

const HOUR: Duration = Duration::from_secs(3600);
const SOON_AFTER: Duration = Duration::from_millis(700);

type Answer = Result<Step<i64>, Failure>;

/// Says which generation it attempts, and does what the test says.
struct Scripted {
    begins: mpsc::UnboundedSender<i64>,
    answers: Mutex<mpsc::UnboundedReceiver<Answer>>,
}

/// The test's side.
struct Script {
    began: Told<i64>,
    answers: mpsc::UnboundedSender<Answer>,
}

impl Script {
    /// Waits for an attempt at `generation` and lets it end with `answer`.
    async fn attempt(&self, generation: i64, answer: Answer) -> Result<()> {
        assert_eq!(self.began.next().await?, generation);
        self.answers.send(answer).context("the handler is gone")
    }
}

fn scripted() -> (Scripted, Script) {
    let (begins, began) = channel();
    let (answers, told) = mpsc::unbounded_channel();
    (Scripted { begins, answers: Mutex::new(told) }, Script { began, answers })
}

impl Reconcile for Scripted {
    const KIND: &'static str = "test.scripted";
    const SERIAL_KEY: Option<fn(&Value) -> String> = Some(|input| format!("test:{}", input["of"]));
    type Input = Value;
    type Desired = i64;
    type Output = i64;

    fn spec(&self) -> KindSpec {
        let policy = Policy { backoff_base: HOUR, max_attempts: 3, ..Policy::default() };
        KindSpec {
            policy,
            linger: Duration::ZERO,
            lookup_lag: Duration::ZERO,
            ..KindSpec::new(Mode::Reconcile, "test")
        }
    }

    async fn read(
        &self,
        _: &mut PgConnection,
        operation: &Operation,
        _: &Value,
    ) -> Result<Read<i64>, sqlx::Error> {
        Ok(Read::Desired(operation.generation))
    }

    async fn converge(&self, _: &Call, _: &Value, generation: &i64) -> Answer {
        let _gone = self.begins.send(*generation);
        let told = self.answers.lock().await.recv().await;
        told.unwrap_or_else(|| Err(Failure::poison("test.over")))
    }

    async fn record(&self, tx: &mut Record<'_>, _: &Value, end: Conclusion<'_, i64>) -> Result<(), Error> {
        let word = if matches!(end, Conclusion::Succeeded(_)) { "done" } else { "refused" };
        note(tx, word).await
    }

    async fn ask_person(&self, tx: &mut Record<'_>, _: &Value, why: &Failure) -> Result<(), Error> {
        note(tx, &format!("asks: {}", why.code)).await
    }
}

async fn note(tx: &mut Record<'_>, word: &str) -> Result<(), Error> {
    let insert = sqlx::query("insert into public.note values ($1)").bind(word);
    insert.execute(tx.connection()).await?;
    Ok(())
}

struct Bed {
    pool: PgPool,
    script: Script,
    eager: backline_runtime::Eager,
    running: Running,
}

impl Bed {
    async fn start(pool: PgPool) -> Result<Self> {
        sqlx::raw_sql("create table public.note (word text)").execute(&pool).await?;
        let (handler, script) = scripted();
        let workload = Workload::new("test", config(&pool, Duration::from_secs(30))?).reconcile(handler);
        let eager = workload.eager();
        let running = Running::start(workload);
        Ok(Self { pool, script, eager, running })
    }

    async fn ask(&self) -> Result<()> {
        enqueue(&self.pool, Scripted::KIND, "k").await?;
        self.eager.committed();
        Ok(())
    }

    async fn ask_later(&self, delay: Duration) -> Result<()> {
        let sql = "select backline.enqueue_operation($1, $2, 'k', '{}', delay => make_interval(secs => $3))";
        let query = sqlx::query(sql).bind(Scripted::KIND).bind(uuid::Uuid::from_u128(7));
        query.bind(delay.as_secs_f64()).execute(&self.pool).await?;
        self.eager.committed();
        Ok(())
    }

    async fn holds(&self, sql: &'static str) -> Result<()> {
        let poll = async {
            while !sqlx::query_scalar::<_, bool>(sql).fetch_one(&self.pool).await? {
                tokio::task::yield_now().await;
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(SOON, poll).await.with_context(|| format!("never: {sql}"))?
    }

    /// Waits until nothing is open and returns the outcomes' generations.
    async fn settled(self) -> Result<Vec<i64>> {
        self.holds("select not exists (select from backline.operation)").await?;
        let sql = "select generation from backline.operation_history order by finished_at";
        let generations = sqlx::query_scalar(sql).fetch_all(&self.pool).await?;
        self.running.stop().await?;
        Ok(generations)
    }
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn a_request_during_a_back_off_is_due_now_with_attempts_of_its_own(pool: PgPool) -> Result<()> {
    let bed = Bed::start(pool).await?;
    bed.ask().await?;
    bed.script.attempt(1, Err(Failure::transient("test.not_now"))).await?;
    bed.holds("select exists (select from backline.operation where state = 'ready' and attempt = 1)").await?;
    bed.ask().await?;
    bed.script.attempt(2, Ok(Step::Again(HOUR))).await?;
    bed.holds("select exists (select from backline.operation where state = 'ready' and attempt = 0 and due_at > now() + interval '50 min')").await?;
    bed.ask().await?;
    bed.script.attempt(3, Ok(Step::Done(3))).await?;
    assert_eq!(bed.settled().await?, [3]);
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn a_request_during_an_attempt_that_fails_for_good_is_carried_out(pool: PgPool) -> Result<()> {
    let bed = Bed::start(pool).await?;
    for (asked, answer) in [
        (1, Err(Failure::transient("test.not_now"))),
        (2, Err(Failure::poison("test.unreadable"))),
        (3, Ok(Step::Person(Failure::rejected("test.whose")))),
        (4, Ok(Step::Again(HOUR))),
    ] {
        if asked == 1 {
            bed.ask().await?;
        }
        assert_eq!(bed.script.began.next().await?, asked);
        bed.ask().await?;
        let folded = "select desired_generation > claimed_generation from backline.operation";
        bed.holds(folded).await?;
        bed.script.answers.send(answer)?;
    }
    bed.script.attempt(5, Ok(Step::Done(5))).await?;
    bed.holds("select not exists (select from public.note where word like 'asks%')").await?;
    assert_eq!(bed.settled().await?, [5]);
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn a_look_that_was_owed_later_is_made_although_an_earlier_one_came(pool: PgPool) -> Result<()> {
    let bed = Bed::start(pool).await?;
    // Waiting already, then brought forward.
    bed.ask_later(SOON_AFTER).await?;
    bed.holds("select exists (select from backline.operation where due_at > accepted_at)").await?;
    let owed = tokio::time::Instant::now() + SOON_AFTER;
    bed.ask().await?;
    bed.script.attempt(2, Ok(Step::Done(2))).await?;
    ensure!(tokio::time::Instant::now() < owed, "it waited for the older request's time");
    bed.script.attempt(3, Ok(Step::Done(3))).await?;
    bed.holds("select not exists (select from backline.operation)").await?;
    // Asked for while an attempt runs.
    bed.ask().await?;
    assert_eq!(bed.script.began.next().await?, 4);
    bed.ask_later(SOON_AFTER).await?;
    bed.holds("select desired_generation > claimed_generation from backline.operation").await?;
    bed.script.answers.send(Ok(Step::Done(4)))?;
    bed.script.attempt(5, Ok(Step::Done(5))).await?;
    bed.script.attempt(6, Ok(Step::Done(6))).await?;
    assert_eq!(bed.settled().await?, [2, 3, 4, 5, 6]);
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn a_person_is_asked_with_what_the_application_shows_and_a_newer_request_tries_again(
    pool: PgPool,
) -> Result<()> {
    let bed = Bed::start(pool).await?;
    bed.ask().await?;
    let why = Failure::rejected("test.whose").with_detail("two claim it");
    bed.script.attempt(1, Ok(Step::Person(why))).await?;
    bed.holds("select exists (select from backline.operation where state = 'manual' and failure_code = 'test.whose' and failure_detail = 'two claim it')").await?;
    bed.holds("select array_agg(word) = '{asks: test.whose}' from public.note").await?;
    let evidence = "select count(*) = 1 from backline.attempt_evidence where code = 'test.whose'";
    bed.holds(evidence).await?;
    bed.ask().await?;
    bed.script.attempt(2, Ok(Step::Done(2))).await?;
    assert_eq!(bed.settled().await?, [2]);
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn the_serial_key_is_the_kinds_whatever_a_producer_gave(pool: PgPool) -> Result<()> {
    let bed = Bed::start(pool).await?;
    let ask = |key: &'static str, of: i64, serial: Option<&'static str>| {
        let sql = "select backline.enqueue_operation($1, $2, $3, $4, serial_key => $5)";
        let query = sqlx::query(sql).bind(Scripted::KIND).bind(uuid::Uuid::from_u128(7)).bind(key);
        query.bind(serde_json::json!({"of": of})).bind(serial).execute(&bed.pool)
    };
    ask("a", 1, None).await?;
    ask("b", 1, Some("another")).await?;
    ask("c", 2, None).await?;
    bed.eager.committed();
    // Two of the three share a key, so one waits until the other has ended.
    bed.holds(
        "select count(*) = 1 from backline.operation where state = 'waiting' and serial_key = 'test:1'",
    )
    .await?;
    bed.holds(
        "select array_agg(serial_key order by serial_key) = '{test:1,test:2}' from backline.serial_hold",
    )
    .await?;
    for _ in 0..3 {
        bed.script.attempt(1, Ok(Step::Done(1))).await?;
    }
    assert_eq!(bed.settled().await?, [1, 1, 1]);
    Ok(())
}
