//! Checks and defaults of subscription settings. Figures: comments of `Subscription`, `RetryPolicy`,
//! `DeadLetterPolicy` and `ExpirationPolicy` in `google/pubsub/v1/pubsub.proto`.

use super::Broker;
use crate::filter::Filter;
use crate::limits;
use crate::state::{RetryBackoff, Rules};
use googleapis_tonic_google_pubsub_v1::google::pubsub::v1 as pb;
use prost_types::Duration as WireDuration;
use std::time::Duration;
use tonic::Status;

const DAY: i64 = 86_400;

fn seconds(seconds: i64) -> WireDuration {
    WireDuration { seconds, nanos: 0 }
}

fn refuse<T>(text: impl Into<String>) -> Result<T, Status> {
    Err(Status::invalid_argument(text))
}

impl Broker {
    /// Fills defaults in and refuses what the service refuses.
    pub(super) fn check_subscription(&self, config: &mut pb::Subscription) -> Result<(), Status> {
        limits::name(&config.name, "subscriptions")?;
        if config.ack_deadline_seconds == 0 {
            config.ack_deadline_seconds = 10;
        }
        self.check_deadline(config.ack_deadline_seconds)?;
        let retention = config.message_retention_duration.get_or_insert(seconds(7 * DAY));
        if !(600..=31 * DAY).contains(&retention.seconds) {
            return refuse("message_retention_duration: must be 10 minutes to 31 days");
        }
        let expiration =
            config.expiration_policy.get_or_insert(pb::ExpirationPolicy { ttl: Some(seconds(31 * DAY)) });
        if expiration.ttl.as_ref().is_some_and(|ttl| ttl.seconds < DAY) {
            return refuse("expiration_policy.ttl: must be at least 1 day");
        }
        Filter::parse(&config.filter).map_err(|e| Status::invalid_argument(e.to_string()))?;
        if let Some(policy) = &mut config.retry_policy {
            check_retry(policy)?;
        }
        if let Some(policy) = &mut config.dead_letter_policy {
            if policy.max_delivery_attempts == 0 {
                policy.max_delivery_attempts = 5;
            }
            if !(5..=100).contains(&policy.max_delivery_attempts) {
                return refuse("dead_letter_policy.max_delivery_attempts: must be 5 to 100");
            }
            self.topic(&policy.dead_letter_topic)?;
        }
        Ok(())
    }

    /// Checks a deadline in seconds that is no nack.
    pub(crate) fn check_deadline(&self, deadline: i32) -> Result<Duration, Status> {
        let asked = Duration::from_secs(u64::try_from(deadline).unwrap_or_default());
        let floor = self.config.min_ack_deadline.min(Duration::from_secs(10));
        if asked < floor || asked > Duration::from_secs(600) || asked.is_zero() {
            return refuse(format!("ack_deadline_seconds: {deadline} is not between {floor:?} and 600 s"));
        }
        Ok(self.config.effective_deadline(asked))
    }
}

fn check_retry(policy: &mut pb::RetryPolicy) -> Result<(), Status> {
    let minimum = *policy.minimum_backoff.get_or_insert(seconds(10));
    let maximum = *policy.maximum_backoff.get_or_insert(seconds(600));
    for bound in [&minimum, &maximum] {
        if duration(bound).is_none_or(|bound| bound > Duration::from_secs(600)) {
            return refuse("retry_policy: backoffs must be 0 to 600 s");
        }
    }
    if duration(&minimum) > duration(&maximum) {
        return refuse("retry_policy: minimum_backoff is above maximum_backoff");
    }
    Ok(())
}

fn duration(wire: &WireDuration) -> Option<Duration> {
    Some(Duration::new(u64::try_from(wire.seconds).ok()?, u32::try_from(wire.nanos).ok()?))
}

/// The delivery rules of checked settings, with no retry delay above `backoff_cap`.
pub(super) fn rules(config: &pb::Subscription, backoff_cap: Option<Duration>) -> Rules {
    let bound = |wire: &Option<WireDuration>| {
        let asked = wire.as_ref().and_then(duration).unwrap_or_default();
        backoff_cap.map_or(asked, |cap| asked.min(cap))
    };
    Rules {
        ordered: config.enable_message_ordering,
        exactly_once: config.enable_exactly_once_delivery,
        retain_acked: config.retain_acked_messages,
        retry: config.retry_policy.as_ref().map(|policy| RetryBackoff {
            minimum: bound(&policy.minimum_backoff),
            maximum: bound(&policy.maximum_backoff),
        }),
        dead_letter: config.dead_letter_policy.as_ref().map(|policy| crate::state::DeadLetterRule {
            topic: policy.dead_letter_topic.clone(),
            attempts: u32::try_from(policy.max_delivery_attempts).unwrap_or(5),
        }),
    }
}
