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
    /// Lease of a claim batch; longer than 2.25 times any request timeout.
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
    pub fn check(&self) -> Result<(), Error> {
        let bad = |name, reason: String| Err(Error::Setting { name, reason });
        if self.operations == 0 || self.claim_batch == 0 || self.connections < 2 {
            return bad(
                "capacity",
                "operations and claim batch must be at least 1, connections at least 2".into(),
            );
        }
        refuse_zero(&[
            ("BACKLINE_LEASE", self.lease),
            ("BACKLINE_POLL", self.poll),
            ("BACKLINE_COMMIT_LAG", self.commit_lag),
            ("BACKLINE_ACQUIRE_TIMEOUT", self.acquire_timeout),
        ])?;
        if self.acquire_timeout >= self.lease {
            return bad(
                "BACKLINE_ACQUIRE_TIMEOUT",
                format!("{:?} must be shorter than BACKLINE_LEASE, {:?}", self.acquire_timeout, self.lease),
            );
        }
        if self.deliveries == 0 || self.delivery_bytes == 0 {
            return bad("deliveries", "and delivery_bytes must be at least 1".into());
        }
        if self.lease > LONGEST_LEASE {
            return bad(
                "BACKLINE_LEASE",
                format!(
                    "{:?} is longer than {LONGEST_LEASE:?}, for which a dead process would hold its work",
                    self.lease
                ),
            );
        }
        Ok(())
    }

    /// Checks that requests fit the lease wherever between two renewals their attempt begins. `name` says whose request
    /// timeout it is: a setting, or a kind.
    ///
    /// Renewals come every third of the lease, so an attempt may begin with two thirds of it left. A first byte may leave
    /// until one request timeout before the lease's end. Before the first byte a connection is made, for which clients
    /// allow half of a request timeout, and a request without a body is not sent at all unless that long is left. So
    /// 2/3 lease - request > 1/2 request, or lease > 9/4 request. With a shorter lease attempts that begin late send
    /// nothing and are spent all the same.
    ///
    /// # Errors
    /// [`Error::Setting`] naming both.
    pub fn check_request(&self, name: &'static str, request: Duration) -> Result<(), Error> {
        refuse_zero(&[(name, request)])?;
        if self.lease.saturating_mul(4) <= request.saturating_mul(9) {
            let reason = format!(
                "{:?} is not longer than 2.25 times the request timeout of {request:?} ({name}): an attempt that begins just \
                 before a renewal would have no time to send anything; make the lease longer or the timeout shorter",
                self.lease
            );
            return Err(Error::Setting { name: "BACKLINE_LEASE", reason });
        }
        Ok(())
    }
}

/// Refuses, by name, times that must pass for anything to work: a timeout of nothing, a pause of nothing.
///
/// # Errors
/// [`Error::Setting`] naming the first that is zero.
pub fn refuse_zero(settings: &[(&'static str, Duration)]) -> Result<(), Error> {
    match settings.iter().find(|(_, duration)| duration.is_zero()) {
        Some((name, _)) => Err(Error::Setting { name, reason: "must not be zero".to_owned() }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::Capacity;
    use std::time::Duration;

    fn refusal(capacity: &Capacity, request: Duration) -> Option<String> {
        let checked =
            capacity.check().and_then(|()| capacity.check_request("STRIPE_REQUEST_TIMEOUT", request));
        checked.err().map(|error| error.to_string())
    }

    #[test]
    fn a_lease_that_leaves_late_attempts_no_time_is_refused_by_both_names() {
        let second = Duration::from_secs(1);
        assert_eq!(refusal(&Capacity::default(), 10 * second), None);
        let short = Capacity { lease: 9 * second, ..Capacity::default() };
        assert_eq!(refusal(&short, Duration::from_millis(3999)), None);
        let text = refusal(&short, 4 * second).unwrap_or_default();
        assert!(text.contains("BACKLINE_LEASE") && text.contains("STRIPE_REQUEST_TIMEOUT"), "{text}");
        assert!(refusal(&short, Duration::MAX).is_some());
    }

    #[test]
    fn a_time_of_nothing_is_refused_by_name() {
        let zero = Duration::ZERO;
        let refused = refusal(&Capacity::default(), zero);
        assert_eq!(refused.as_deref(), Some("setting STRIPE_REQUEST_TIMEOUT: must not be zero"));
        let refused = refusal(&Capacity { lease: zero, ..Capacity::default() }, Duration::from_secs(1));
        assert_eq!(refused.as_deref(), Some("setting BACKLINE_LEASE: must not be zero"));
    }
}
