//! Command line and environment of the relay.

use backline_broker::BrokerConfig;
use backline_relay::{RelayConfig, SettingError};
use std::net::SocketAddr;
use std::time::Duration;

/// Hands outbox entries to Pub/Sub and records what Pub/Sub confirmed.
#[derive(Debug, clap::Parser)]
#[command(name = "backline-relay", version)]
pub(crate) struct Settings {
    /// PostgreSQL with the outbox; a direct connection unless --doorbell=false.
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    pub(crate) database_url: String,
    /// Connections to PostgreSQL.
    #[arg(long, env = "BACKLINE_RELAY_CONNECTIONS", default_value_t = 12)]
    pub(crate) connections: u32,
    /// Longest wait for a free connection.
    #[arg(long, env = "BACKLINE_RELAY_ACQUIRE_TIMEOUT", default_value = "5s", value_parser = humantime::parse_duration)]
    pub(crate) acquire_timeout: Duration,
    /// Google Cloud project.
    #[arg(long, env = "PUBSUB_PROJECT_ID", default_value = "backline", value_parser = backline_broker::project_id)]
    project: String,
    /// Pub/Sub emulator as host:port; without it the real service.
    #[arg(long, env = "PUBSUB_EMULATOR_HOST", value_parser = backline_broker::emulator_host)]
    emulator_host: Option<String>,
    /// Connections to Pub/Sub.
    #[arg(long, env = "BACKLINE_RELAY_CHANNELS", default_value_t = 2)]
    channels: usize,
    /// Address of /livez, /readyz and /metrics.
    #[arg(long, env = "BACKLINE_RELAY_HEALTH", default_value = "127.0.0.1:9101")]
    pub(crate) health: SocketAddr,
    /// Log filter, in the syntax of `RUST_LOG`.
    #[arg(long, env = "RUST_LOG", default_value = "info")]
    pub(crate) log: String,
    /// OTLP endpoint (gRPC) that spans go to.
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT")]
    pub(crate) otlp_endpoint: Option<String>,
    /// Name shown in the lane table.
    #[arg(long, env = "BACKLINE_RELAY_OWNER", default_value = "relay")]
    owner: String,
    /// Lanes worked on at the same time.
    #[arg(long, env = "BACKLINE_RELAY_LANES", default_value_t = RelayConfig::default().lanes)]
    lanes: usize,
    /// Entries per batch.
    #[arg(long, env = "BACKLINE_RELAY_BATCH_ROWS", default_value_t = RelayConfig::default().batch_rows)]
    batch_rows: usize,
    /// Lease of a lane.
    #[arg(long, env = "BACKLINE_RELAY_LEASE", default_value = "30s", value_parser = humantime::parse_duration)]
    lease: Duration,
    /// Time limit of one publish request.
    #[arg(long, env = "BACKLINE_RELAY_PUBLISH_TIMEOUT", default_value = "10s", value_parser = humantime::parse_duration)]
    publish_timeout: Duration,
    /// Longest producer transaction.
    #[arg(long, env = "BACKLINE_RELAY_COMMIT_LAG", default_value = "60s", value_parser = humantime::parse_duration)]
    commit_lag: Duration,
    /// How often lanes are scanned from the beginning.
    #[arg(long, env = "BACKLINE_RELAY_UNMARKED_EVERY", default_value = "30s", value_parser = humantime::parse_duration)]
    unmarked_every: Duration,
    /// Pause between looks while idle.
    #[arg(long, env = "BACKLINE_RELAY_POLL", default_value = "1s", value_parser = humantime::parse_duration)]
    poll: Duration,
    /// Listen for commits while idle; false behind a transaction pooler, which must keep prepared statements
    /// (PgBouncer 1.21 or later with max_prepared_statements above 0).
    #[arg(long, env = "BACKLINE_RELAY_DOORBELL", default_value_t = true, action = clap::ArgAction::Set)]
    doorbell: bool,
    /// How often published events are compared with the seals of required consumers.
    #[arg(long, env = "BACKLINE_RELAY_REOFFER_EVERY", default_value = "30s", value_parser = humantime::parse_duration)]
    reoffer_every: Duration,
    /// Offers of one event before it is parked.
    #[arg(long, env = "BACKLINE_RELAY_MAX_OFFERS", default_value_t = RelayConfig::default().max_offers)]
    max_offers: i32,
}

impl Settings {
    /// Checks what only this binary knows: the ways to the database and the broker.
    ///
    /// # Errors
    /// The first setting that cannot work.
    pub(crate) fn check(&self) -> Result<(), SettingError> {
        let bad = |setting, reason| Err(SettingError { setting, reason });
        // One is read for the metrics, the lanes renew on another while a third records.
        if self.connections < 3 {
            return bad("connections", "is below 3");
        }
        if self.acquire_timeout.is_zero() {
            return bad("acquire_timeout", "is zero");
        }
        if self.channels == 0 {
            return bad("channels", "is zero");
        }
        Ok(())
    }

    pub(crate) fn relay(&self) -> RelayConfig {
        RelayConfig {
            // Two processes with one configured name are told apart by people, too.
            owner: format!("{}-{}", self.owner, std::process::id()),
            lanes: self.lanes,
            batch_rows: self.batch_rows,
            lease: self.lease,
            publish_timeout: self.publish_timeout,
            commit_lag: self.commit_lag,
            unmarked_every: self.unmarked_every,
            poll: self.poll,
            doorbell: self.doorbell,
            reoffer_every: self.reoffer_every,
            max_offers: self.max_offers,
            ..RelayConfig::default()
        }
    }

    pub(crate) fn broker(&self) -> BrokerConfig {
        BrokerConfig {
            publish_timeout: self.publish_timeout,
            channels: self.channels,
            ..BrokerConfig::new(&self.project, self.emulator_host.clone())
        }
    }
}
