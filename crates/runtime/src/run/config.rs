//! Configuration of a worker process. `main` parses it from the environment; nothing else reads the environment.

use crate::flow::Capacity;
use std::net::SocketAddr;
use std::time::Duration;

/// What a worker's `main` flattens into its command line.
#[derive(Debug, Clone, clap::Args)]
pub struct WorkloadConfig {
    /// PostgreSQL connection URL of the primary.
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    pub database_url: String,
    /// Google Cloud project of the topics.
    #[arg(long, env = "PUBSUB_PROJECT_ID", default_value = "backline", value_parser = backline_broker::project_id)]
    pub pubsub_project: String,
    /// host:port of a Pub/Sub emulator; unset = the real service.
    #[arg(long, env = "PUBSUB_EMULATOR_HOST", value_parser = backline_broker::emulator_host)]
    pub pubsub_emulator_host: Option<String>,
    /// Topic id that consumers read.
    #[arg(long, env = "BACKLINE_TOPIC", default_value = "domain-events")]
    pub topic: String,
    /// Print the topics and subscriptions that this worker needs, as JSON for `backline topology`, and end.
    #[arg(long)]
    pub topology: bool,
    /// Address of /livez, /readyz and /metrics; port 0 lets the system choose.
    #[arg(long, env = "BACKLINE_HEALTH_LISTEN")]
    pub health_listen: Option<SocketAddr>,
    /// Never LISTEN: for connections through a transaction pooler.
    #[arg(long, env = "BACKLINE_POLLING_ONLY", default_value_t = false)]
    pub polling_only: bool,
    /// How often expired leases are looked for.
    #[arg(long, env = "BACKLINE_SWEEP", default_value = "5s", value_parser = humantime::parse_duration)]
    pub sweep: Duration,
    /// How long after publication an unsealed event is offered again.
    #[arg(long, env = "BACKLINE_REOFFER_AFTER", default_value = "1h", value_parser = humantime::parse_duration)]
    pub reoffer_after: Duration,
    /// Log filter, in the syntax of `RUST_LOG`.
    #[arg(long, env = "RUST_LOG", default_value = "info")]
    pub log: String,
    /// OTLP endpoint (gRPC) that spans go to.
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT")]
    pub otlp_endpoint: Option<String>,
    /// Limits of this process.
    #[command(flatten)]
    pub capacity: Capacity,
}
