//! Topics and subscriptions for development and tests; deployments declare theirs in Terraform.

use crate::connect::Broker;
use crate::error::AdminError;
use google_cloud_gax::error::rpc::Code;
use google_cloud_pubsub::model::{DeadLetterPolicy, ExpirationPolicy, RetryPolicy, Subscription};
use google_cloud_wkt::Duration as WireDuration;
use std::time::Duration;

/// Where entries go that the broker gave up on.
#[derive(Clone, Debug)]
pub struct DeadLetter {
    /// Topic id; must have a subscription, or entries are lost there.
    pub topic: String,
    /// Deliveries before that, 5 to 100, counted approximately by the broker.
    pub max_delivery_attempts: u8,
}

/// What a consumer's subscription looks like.
#[derive(Clone, Debug)]
pub struct SubscriptionSpec {
    /// Subscription id.
    pub subscription: String,
    /// Topic id.
    pub topic: String,
    /// Lease of a delivery before it is extended, 10 to 600 s.
    pub ack_deadline: Duration,
    /// Shortest delay before redelivery, 0 to 600 s. Without a retry policy redelivery is immediate.
    pub min_backoff: Duration,
    /// Longest delay before redelivery, 0 to 600 s.
    pub max_backoff: Duration,
    /// Dead letters; `None` keeps trying until retention ends.
    pub dead_letter: Option<DeadLetter>,
}

impl SubscriptionSpec {
    /// A subscription with a lease of 60 s, redelivery after 1 to 60 s, and no dead letters.
    #[must_use]
    pub fn new(subscription: impl Into<String>, topic: impl Into<String>) -> Self {
        Self {
            subscription: subscription.into(),
            topic: topic.into(),
            ack_deadline: Duration::from_secs(60),
            min_backoff: Duration::from_secs(1),
            max_backoff: Duration::from_secs(60),
            dead_letter: None,
        }
    }
}

impl Broker {
    /// Makes a topic if it is not there.
    ///
    /// # Errors
    /// The admin call failed, other than by finding the topic.
    pub async fn ensure_topic(&self, topic: &str) -> Result<(), AdminError> {
        let made = self.inner.topics.create_topic().set_name(self.topic_name(topic)).send().await;
        settle(made.map(drop), "topic", topic)
    }

    /// Makes a subscription if it is not there: ordered, and never expiring (the default deletes an idle one after
    /// 31 days). An existing one is left as it is.
    ///
    /// # Errors
    /// The admin call failed, other than by finding the subscription.
    pub async fn ensure_subscription(&self, spec: &SubscriptionSpec) -> Result<(), AdminError> {
        let retry = RetryPolicy::new()
            .set_minimum_backoff(wire(spec.min_backoff))
            .set_maximum_backoff(wire(spec.max_backoff));
        let deadline = i32::try_from(spec.ack_deadline.as_secs()).unwrap_or(600).clamp(10, 600);
        let mut wanted = Subscription::new()
            .set_name(self.subscription_name(&spec.subscription))
            .set_topic(self.topic_name(&spec.topic))
            .set_ack_deadline_seconds(deadline)
            .set_enable_message_ordering(true)
            .set_expiration_policy(ExpirationPolicy::new())
            .set_retry_policy(retry);
        if let Some(dead) = &spec.dead_letter {
            let policy = DeadLetterPolicy::new()
                .set_dead_letter_topic(self.topic_name(&dead.topic))
                .set_max_delivery_attempts(i32::from(dead.max_delivery_attempts));
            wanted = wanted.set_dead_letter_policy(policy);
        }
        let made = self.inner.subscriptions.create_subscription().with_request(wanted).send().await;
        settle(made.map(drop), "subscription", &spec.subscription)
    }

    /// Asks whether the subscription exists and can be seen.
    ///
    /// # Errors
    /// Not found, not permitted, or no answer within 5 s.
    pub async fn probe_subscription(&self, subscription: &str) -> Result<(), AdminError> {
        let name = self.subscription_name(subscription);
        let found = self.inner.subscriptions.get_subscription().set_subscription(name).send().await;
        found.map(drop).map_err(|source| AdminError {
            what: "subscription",
            name: subscription.to_owned(),
            source,
        })
    }
}

fn settle(made: google_cloud_pubsub::Result<()>, what: &'static str, name: &str) -> Result<(), AdminError> {
    match made {
        Err(source) if source.status().is_none_or(|status| status.code != Code::AlreadyExists) => {
            Err(AdminError { what, name: name.to_owned(), source })
        }
        _ => Ok(()),
    }
}

fn wire(duration: Duration) -> WireDuration {
    WireDuration::clamp(
        i64::try_from(duration.as_secs()).unwrap_or(600).min(600),
        i32::try_from(duration.subsec_nanos()).unwrap_or(0),
    )
}
