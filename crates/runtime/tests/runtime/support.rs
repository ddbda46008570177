//! Workloads that look at nothing by themselves for an hour, and a producer.

use anyhow::{Context, Result};
use backline_runtime::{Capacity, Error, Exit, Workload, WorkloadConfig};
use serde_json::json;
use sqlx::{Connection, PgConnection, PgPool};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// How long a test waits for what should happen at once.
pub(crate) const SOON: Duration = Duration::from_secs(20);
/// What happens only this often does not happen during a test.
const NEVER: Duration = Duration::from_secs(3600);

/// `test` is the test's own database.
pub(crate) fn config(test: &PgPool, lease: Duration) -> Result<WorkloadConfig> {
    let options = test.connect_options();
    let database = options.get_database().context("no database")?;
    let (user, host, port) = (options.get_username(), options.get_host(), options.get_port());
    Ok(WorkloadConfig {
        database_url: format!("postgres://{user}@{host}:{port}/{database}"),
        pubsub_project: "none".to_owned(),
        pubsub_emulator_host: None,
        topic: "domain-events".to_owned(),
        topology: false,
        health_listen: None,
        polling_only: true,
        sweep: NEVER,
        reoffer_after: NEVER,
        log: "info".to_owned(),
        otlp_endpoint: None,
        capacity: Capacity {
            lease,
            poll: NEVER,
            connections: 3,
            acquire_timeout: Duration::from_secs(2),
            ..Capacity::default()
        },
    })
}

/// A workload under way.
pub(crate) struct Running {
    soft: CancellationToken,
    task: JoinHandle<Result<Exit, Error>>,
}

impl Running {
    pub(crate) fn start(workload: Workload) -> Self {
        let soft = CancellationToken::new();
        let task = tokio::spawn(workload.run_until(soft.clone(), CancellationToken::new()));
        Self { soft, task }
    }

    /// Stops it and expects that nothing was abandoned.
    pub(crate) async fn stop(self) -> Result<()> {
        self.soft.cancel();
        anyhow::ensure!(self.task.await?? == Exit::Drained, "work was abandoned");
        Ok(())
    }

    /// Why it ended by itself.
    pub(crate) async fn refusal(self) -> Result<String> {
        let ended = tokio::time::timeout(SOON, self.task).await.context("still running")??;
        Ok(ended.err().context("ended without an error")?.to_string())
    }
}

/// Commits one request, as a producer does; its id.
pub(crate) async fn enqueue(pool: &PgPool, kind: &str, key: &str) -> Result<Uuid> {
    let sql = "select backline.enqueue_operation($1, $2, $3, $4)";
    let query = sqlx::query_scalar(sql).bind(kind).bind(Uuid::from_u128(7)).bind(key).bind(json!({}));
    Ok(query.fetch_one(pool).await?)
}

/// A connection outside every pool, whose locks end with it.
pub(crate) async fn session(pool: &PgPool) -> Result<PgConnection> {
    Ok(PgConnection::connect_with(&pool.connect_options()).await?)
}
