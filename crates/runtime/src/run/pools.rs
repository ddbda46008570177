//! Connections by purpose: heartbeats, the doorbell and scrapes never queue behind work.

use crate::Error;
use crate::run::config::WorkloadConfig;
use backline_outbox::database_options;
use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

/// Planner settings of the work connections. Every statement of the runtime goes through an index; statistics of
/// tables that are empty one minute and hold a million rows the next would now and then choose to scan and hash the
/// whole table (20 ms instead of 4 for a claim of 500 out of 50,000).
const PLANNER: [(&str, &str); 5] = [
    // The penalty of a disabled scan counts as cost, which would trigger compilation: half a second for a sweep.
    ("jit", "off"),
    ("enable_seqscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("plan_cache_mode", "force_generic_plan"),
];

pub(crate) struct Pools {
    /// Claims, finishes, accepts, sweeps.
    pub(crate) work: PgPool,
    /// Lease renewal only.
    pub(crate) heartbeat: PgPool,
    /// Declarations of sleep; the listener has a connection of its own.
    pub(crate) bell: PgPool,
    /// Metrics read from views.
    pub(crate) views: PgPool,
}

impl Pools {
    /// Pools that connect when they are used.
    pub(crate) fn new(config: &WorkloadConfig, name: &str) -> Result<Self, Error> {
        let options = database_options(&config.database_url)?.application_name(&format!("backline-{name}"));
        // A transaction pooler refuses start-up parameters it does not know; there the settings belong on the role.
        let capacity = &config.capacity;
        let working = if config.polling_only {
            options.clone()
        } else {
            // A process that stops inside a transaction keeps its row locks, and with them every lane it touched, from
            // everybody else; past its lease the server ends that transaction.
            let lease = capacity.lease.as_millis().to_string();
            options.clone().options(PLANNER).options([("idle_in_transaction_session_timeout", lease)])
        };
        let pool = |connections: u32, options: &PgConnectOptions| {
            PgPoolOptions::new()
                .max_connections(connections)
                .acquire_timeout(capacity.acquire_timeout)
                // A ping before each use would cost a round trip; run_tx repeats on a lost connection instead.
                .test_before_acquire(false)
                .connect_lazy_with(options.clone())
        };
        Ok(Self {
            work: pool(capacity.connections, &working),
            heartbeat: pool(1, &working),
            bell: pool(1, &options),
            views: pool(1, &options),
        })
    }
}
