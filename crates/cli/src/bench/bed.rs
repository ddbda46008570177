//! The database under measurement: guarded, emptied, filled.

use anyhow::{Context, ensure};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPoolOptions};
use sqlx::{ConnectOptions, PgPool};
use std::time::Duration;
use uuid::Uuid;

/// Organizations of every measurement.
pub(super) const ORGANIZATIONS: i64 = 50;
/// What `cargo xtask bench` calls its throwaway database; others must say what they are for, or `--yes` is given.
const OURS: [&str; 2] = ["backline_check", "backline_bench"];
/// Between looks at something that is about to be true.
const LOOK: Duration = Duration::from_millis(10);
/// Longest wait for one run: a run that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(180);

/// What `backline_runtime` sets on the connections it works with.
const PLANNER: [(&str, &str); 5] = [
    ("jit", "off"),
    ("enable_seqscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("plan_cache_mode", "force_generic_plan"),
];

/// One database that belongs to the bench.
#[derive(Clone)]
pub(super) struct Bed {
    pub(super) pool: PgPool,
    pub(super) url: String,
    options: PgConnectOptions,
}

impl Bed {
    /// Connects, refuses databases that may be somebody's, and puts the bench's own schema in place.
    pub(super) async fn open(url: &str, yes: bool) -> anyhow::Result<Self> {
        let options: PgConnectOptions =
            url.parse().context("DATABASE_URL is not a PostgreSQL connection URL")?;
        let name = options.get_database().unwrap_or_default().to_owned();
        ensure!(
            yes || OURS.iter().any(|ours| name.starts_with(ours)),
            "DATABASE_URL: the bench empties every table of schema backline; `{name}` is not named backline_bench…, so add --yes if nothing in it matters"
        );
        let options = options.application_name("backline-bench");
        let pool = PgPoolOptions::new()
            .max_connections(24)
            .test_before_acquire(false)
            .connect_with(options.clone())
            .await
            .context("DATABASE_URL: PostgreSQL cannot be reached")?;
        sqlx::raw_sql(include_str!("sql/workshop.sql"))
            .execute(&pool)
            .await
            .context("is the schema migrated?")?;
        Ok(Self { pool, url: url.to_owned(), options })
    }

    /// A connection outside the pool, with a statement cache of its own.
    pub(super) async fn connection(&self) -> anyhow::Result<PgConnection> {
        Ok(self.options.connect().await?)
    }

    /// As [`Bed::connection`], with the planner settings of the runtime's work connections: a ceiling must not fall
    /// to a plan that the product rules out.
    pub(super) async fn steady_connection(&self) -> anyhow::Result<PgConnection> {
        Ok(self.options.clone().options(PLANNER).connect().await?)
    }

    /// Empty tables, no lane held.
    pub(super) async fn reset(&self) -> anyhow::Result<()> {
        sqlx::raw_sql(include_str!("sql/reset.sql")).execute(&self.pool).await?;
        let lanes = "update backline.outbox_lane set owner = null, until = '-infinity', mark_seq = 0, unmarked_at = clock_timestamp()";
        sqlx::raw_sql(lanes).execute(&self.pool).await?;
        Ok(())
    }

    /// Ready operations of `kind`; `skew` percent of them in one organization.
    pub(super) async fn operations(&self, kind: &str, count: i64, skew: i64) -> anyhow::Result<()> {
        let seed = sqlx::query(include_str!("sql/seed_operations.sql"));
        seed.bind(kind).bind(count).bind(ORGANIZATIONS).bind(skew).execute(&self.pool).await?;
        Ok(())
    }

    /// Outbox entries that no relay may take before [`Bed::open_lanes`].
    pub(super) async fn entries(&self, count: i64) -> anyhow::Result<()> {
        sqlx::raw_sql("update backline.outbox_lane set until = 'infinity'").execute(&self.pool).await?;
        sqlx::query(include_str!("sql/seed_outbox.sql")).bind(count).execute(&self.pool).await?;
        Ok(())
    }

    /// The same state of pages and statistics before every run, and no checkpoint in the middle of one.
    pub(super) async fn settle(&self) -> anyhow::Result<()> {
        for statement in ["vacuum analyze", "checkpoint"] {
            sqlx::raw_sql(statement).execute(&self.pool).await?;
        }
        Ok(())
    }

    /// Nobody claims before [`Bed::start_claims`].
    pub(super) async fn hold_claims(&self) -> anyhow::Result<()> {
        let pause = "insert into backline.pause (scope, name, reason, paused_by) values ('workload', 'bench', 'not yet', 'bench')";
        sqlx::raw_sql(pause).execute(&self.pool).await?;
        Ok(())
    }

    /// The moment claims may begin, in seconds of the database's clock.
    pub(super) async fn start_claims(&self) -> anyhow::Result<f64> {
        let go = "with d as (delete from backline.pause returning 1) select extract(epoch from clock_timestamp())::float8 from (select count(*) from d) n";
        let at = sqlx::query_scalar(go).fetch_one(&self.pool).await?;
        self.ring("backline_intake").await?;
        Ok(at)
    }

    /// The moment the relay may begin.
    pub(super) async fn open_lanes(&self) -> anyhow::Result<f64> {
        let at = self.now().await?;
        sqlx::raw_sql("update backline.outbox_lane set until = '-infinity'").execute(&self.pool).await?;
        self.ring("backline_outbox").await?;
        Ok(at)
    }

    async fn ring(&self, bell: &str) -> anyhow::Result<()> {
        sqlx::query("select pg_notify($1, '')").bind(bell).execute(&self.pool).await?;
        Ok(())
    }

    /// Seconds of the database's clock.
    pub(super) async fn now(&self) -> anyhow::Result<f64> {
        self.number("select extract(epoch from clock_timestamp())::float8").await
    }

    /// One number.
    pub(super) async fn number(&self, sql: &'static str) -> anyhow::Result<f64> {
        Ok(sqlx::query_scalar(sql).fetch_one(&self.pool).await?)
    }

    /// Operations claimed so far in this database's life: one page to read, whatever the size of the tables.
    pub(super) async fn claimed(&self) -> anyhow::Result<i64> {
        Ok(sqlx::query_scalar("select last_value from backline.claim_token").fetch_one(&self.pool).await?)
    }

    /// Waits until `count` operations are claimed since `from`, then until nothing is open.
    pub(super) async fn finished(&self, from: i64, count: i64) -> anyhow::Result<()> {
        self.until("all operations claimed", async || Ok(self.claimed().await? - from >= count)).await?;
        let open = "select (not exists (select from backline.operation))::int::float8";
        self.until("all operations finished", async || Ok(self.number(open).await? > 0.0)).await
    }

    /// Polls a condition.
    pub(super) async fn until(
        &self,
        what: &str,
        met: impl AsyncFn() -> anyhow::Result<bool>,
    ) -> anyhow::Result<()> {
        let end = tokio::time::Instant::now() + PATIENCE;
        while !met().await? {
            ensure!(tokio::time::Instant::now() < end, "{what}: not within {PATIENCE:?}");
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    /// When the last operation was finished, in seconds of the database's clock.
    pub(super) async fn last_finish(&self) -> anyhow::Result<f64> {
        self.number("select extract(epoch from max(finished_at))::float8 from backline.operation_history")
            .await
    }
}

/// The id of an organization, from 1.
pub(super) fn organization(number: i64) -> Uuid {
    let number = 1 + u128::from(number.unsigned_abs()) % 50;
    // Decimal digits in the last group, as the seeds write them.
    Uuid::parse_str(&format!("00000000-0000-7000-8000-{number:012}")).unwrap_or_default()
}

/// BEGIN of a ceiling: what a bare program would send. The product's transactions are `run_tx!`'s.
pub(super) async fn begin(connection: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::raw_sql("begin").execute(connection).await.map(drop)
}

/// COMMIT of a ceiling.
pub(super) async fn commit(connection: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::raw_sql("commit").execute(connection).await.map(drop)
}

/// Counts as rates need them.
#[expect(clippy::cast_precision_loss, reason = "counts of rows are far below 2^52")]
pub(super) fn real(count: i64) -> f64 {
    count as f64
}
