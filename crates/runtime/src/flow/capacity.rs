//! What one process may have open at a time.

use crate::Error;
use std::time::Duration;

/// Far above any request, and within what PostgreSQL takes as a timeout.
const LONGEST_LEASE: Duration = Duration::from_secs(24 * 3600);

/// Limits of one worker process, checked against each other at start.
#[derive(Debug, Clone, clap::Args)]
pub struct Capacity {
    /// Operations in flight: claimed and not durably ended. Four batches: one is being claimed, one performed, one
    /// written, and one is slack; with two, claiming waits for writing.
    #[arg(long, env = "BACKLINE_OPERATIONS", default_value = "2000")]
    pub operations: usize,
    /// Operations claimed per round at most.
    #[arg(long, env = "BACKLINE_CLAIM_BATCH", default_value = "500")]
    pub claim_batch: usize,
    /// Database connections of the work pool; heartbeats and the doorbell have their own.
    #[arg(long, env = "BACKLINE_CONNECTIONS", default_value = "8")]
    pub connections: u32,
    /// Broker deliveries outstanding at most, per consumer.
    ///
    /// Google's client sends acknowledgements every 100 ms and a delivery keeps its place until then, so a worker
    /// accepts at most this many per 100 ms. A look with `backline bench --only path` on two busy cores: 1,900 per
    /// second with 200, 4,000 with 500, and with 1000 the cores were the limit, at 5,600. What a killed worker held
    /// comes again after the acknowledgement deadline (60 s in subscriptions of ours); where that matters more than the
    /// rate, a fifth of the arrivals per second is enough.
    #[arg(long, env = "BACKLINE_DELIVERIES", default_value = "1000")]
    pub deliveries: usize,
    /// Broker bytes outstanding at most, per consumer.
    #[arg(long, env = "BACKLINE_DELIVERY_BYTES", default_value = "67108864")]
    pub delivery_bytes: usize,
    /// Ready operations above which deliveries are left to the broker.
    #[arg(long, env = "BACKLINE_READY_WATERMARK", default_value = "100000")]
    pub ready_watermark: i64,
    /// Lease of a claim batch.
    #[arg(long, env = "BACKLINE_LEASE", default_value = "30s", value_parser = humantime::parse_duration)]
    pub lease: Duration,
    /// How long an idle process waits before it looks again without being rung.
    #[arg(long, env = "BACKLINE_POLL", default_value = "1s", value_parser = humantime::parse_duration)]
    pub poll: Duration,
    /// Longest time between a producer's insert and its commit that the intake mark allows for; later commits are
    /// found by the unmarked scan.
    #[arg(long, env = "BACKLINE_COMMIT_LAG", default_value = "5s", value_parser = humantime::parse_duration)]
    pub commit_lag: Duration,
    /// How long shutdown waits for attempts in flight.
    #[arg(long, env = "BACKLINE_GRACE", default_value = "25s", value_parser = humantime::parse_duration)]
    pub grace: Duration,
    /// Wait for a database connection; far below the lease.
    #[arg(long, env = "BACKLINE_ACQUIRE_TIMEOUT", default_value = "5s", value_parser = humantime::parse_duration)]
    pub acquire_timeout: Duration,
}

impl Default for Capacity {
    fn default() -> Self {
        Self {
            operations: 2000,
            claim_batch: 500,
            connections: 8,
            deliveries: 1000,
            // 64 MiB: a backlog of large envelopes must not grow the process (reliability.md, fault 30).
            delivery_bytes: 64 * 1024 * 1024,
            ready_watermark: 100_000,
            lease: Duration::from_secs(30),
            poll: Duration::from_secs(1),
            commit_lag: Duration::from_secs(5),
            grace: Duration::from_secs(25),
            acquire_timeout: Duration::from_secs(5),
        }
    }
}

impl Capacity {
    /// Checks the clocks against each other (obligation J10).
    ///
    /// # Errors
    /// [`Error::Setting`] naming what does not fit.
    pub fn check(&self, longest_request: Duration) -> Result<(), Error> {
        let bad = |name, reason: String| Err(Error::Setting { name, reason });
        if self.operations == 0 || self.claim_batch == 0 || self.connections < 2 {
            return bad(
                "capacity",
                "operations and claim batch must be at least 1, connections at least 2".into(),
            );
        }
        if longest_request >= self.lease {
            return bad(
                "lease",
                format!("{:?} must be longer than the request timeout {longest_request:?}", self.lease),
            );
        }
        if self.acquire_timeout >= self.lease {
            return bad(
                "acquire_timeout",
                format!("{:?} must be shorter than the lease {:?}", self.acquire_timeout, self.lease),
            );
        }
        if self.poll.is_zero() {
            return bad("poll", "must not be zero".into());
        }
        if self.acquire_timeout.is_zero() {
            return bad("acquire_timeout", "must not be zero".into());
        }
        if self.deliveries == 0 || self.delivery_bytes == 0 {
            return bad("deliveries", "and delivery_bytes must be at least 1".into());
        }
        if self.lease > LONGEST_LEASE {
            return bad(
                "lease",
                format!(
                    "{:?} is longer than {LONGEST_LEASE:?}, for which a dead process would hold its work",
                    self.lease
                ),
            );
        }
        Ok(())
    }
}
