//! Settings of the relay, checked against each other before anything starts.

use backline_outbox::Doorbell;
use std::time::Duration;

/// How the relay works.
#[derive(Clone, Debug)]
pub struct RelayConfig {
    /// Shown in the lane table for people; identity is the token.
    pub owner: String,
    /// Lanes worked on at the same time, 1 to 64. Each has one publish request and one statement in flight.
    pub lanes: usize,
    /// Entries per batch, 1 to 1000 (one publish request).
    pub batch_rows: usize,
    /// Bytes of stored payload per batch; a single larger entry still goes, alone.
    pub batch_bytes: usize,
    /// Batches before a lane is given back so that the others get their turn.
    pub batches_per_hold: usize,
    /// Lease of a lane. Longer than `publish_timeout` plus the time to record the result.
    pub lease: Duration,
    /// Time limit of one publish request, as given to the broker.
    pub publish_timeout: Duration,
    /// How long after its insertion an entry may become visible: the longest producer transaction. Lanes are not
    /// scanned from the beginning below this age; see `unmarked_every` for longer ones.
    pub commit_lag: Duration,
    /// How often a lane is scanned from its beginning whatever the mark says.
    pub unmarked_every: Duration,
    /// Pause between looks while idle; the doorbell shortens it.
    pub poll: Duration,
    /// Listen for commits while idle. Off for connections through a transaction pooler.
    pub doorbell: bool,
    /// First pause of a topic after an outage; doubles up to `backoff_max`, spread by jitter.
    pub backoff_start: Duration,
    /// Longest pause of a topic.
    pub backoff_max: Duration,
    /// How often published entries are compared with the seals of required consumers.
    pub reoffer_every: Duration,
    /// Offers of one entry before it is parked.
    pub max_offers: i32,
    /// Readiness turns false when no look at the outbox succeeded for this long.
    pub stall_after: Duration,
}

impl Default for RelayConfig {
    fn default() -> Self {
        Self {
            owner: "relay".to_owned(),
            lanes: 8,
            batch_rows: 500,
            batch_bytes: 4_000_000,
            batches_per_hold: 16,
            lease: Duration::from_secs(30),
            publish_timeout: Duration::from_secs(10),
            commit_lag: Duration::from_secs(60),
            unmarked_every: Duration::from_secs(30),
            poll: Duration::from_secs(1),
            doorbell: true,
            backoff_start: Duration::from_millis(200),
            backoff_max: Duration::from_secs(10),
            reoffer_every: Duration::from_secs(30),
            // Hourly offers for a week, the broker's default retention: a consumer that is down for a night parks nothing.
            max_offers: 168,
            stall_after: Duration::from_secs(15),
        }
    }
}

/// Far above any publish request, and within what PostgreSQL takes as a timeout.
const LONGEST_LEASE: Duration = Duration::from_secs(24 * 3600);

/// A setting that cannot work; the text names it.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{setting}: {reason}")]
pub struct SettingError {
    /// Name of the setting.
    pub setting: &'static str,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl RelayConfig {
    /// Checks the settings against each other.
    ///
    /// # Errors
    /// The first setting that cannot work.
    pub fn check(&self) -> Result<(), SettingError> {
        let checks = [
            ("lanes", (1..=64).contains(&self.lanes), "is not between 1 and 64"),
            ("batch_rows", (1..=1000).contains(&self.batch_rows), "is not between 1 and 1000"),
            ("batch_bytes", self.batch_bytes >= 1, "is zero"),
            ("batches_per_hold", self.batches_per_hold >= 1, "is zero"),
            ("publish_timeout", !self.publish_timeout.is_zero(), "is zero"),
            // A third of the lease passes between renewals, and recording takes its time too.
            (
                "lease",
                self.lease >= self.publish_timeout * 2,
                "is shorter than twice publish_timeout: a lane would be lost during a slow request",
            ),
            ("poll", !self.poll.is_zero(), "is zero"),
            (
                "poll",
                !self.doorbell || self.poll <= Doorbell::POLL_LIMIT,
                "is longer than 5 s, for which a sleeping relay may be woken; shorten it or turn the doorbell off",
            ),
            ("backoff_start", !self.backoff_start.is_zero(), "is zero"),
            ("backoff_max", self.backoff_max >= self.backoff_start, "is shorter than backoff_start"),
            ("unmarked_every", !self.unmarked_every.is_zero(), "is zero"),
            ("stall_after", self.stall_after > self.poll, "is not longer than poll"),
            ("reoffer_every", !self.reoffer_every.is_zero(), "is zero"),
            (
                "lease",
                self.lease <= LONGEST_LEASE,
                "is longer than a day, for which a dead relay would hold its lanes",
            ),
            ("max_offers", self.max_offers >= 1, "is below 1"),
        ];
        match checks.into_iter().find(|(_, good, _)| !good) {
            Some((setting, _, reason)) => Err(SettingError { setting, reason }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::RelayConfig;
    use std::time::Duration;

    #[test]
    fn a_lease_shorter_than_a_request_is_named() {
        assert_eq!(RelayConfig::default().check(), Ok(()));
        let short = RelayConfig { lease: Duration::from_secs(11), ..RelayConfig::default() };
        assert_eq!(short.check().map_err(|error| error.setting), Err("lease"));
    }
}
