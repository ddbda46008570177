//! Making topics and subscriptions, and looking at them.

use crate::connect::Broker;
use crate::error::AdminError;
use crate::topology::{DeadLetter, SubscriptionSpec, Topology};
use google_cloud_gax::error::rpc::Code;
use google_cloud_gax::paginator::ItemPaginator;
use google_cloud_pubsub::model::{DeadLetterPolicy, ExpirationPolicy, RetryPolicy, Subscription};
use google_cloud_wkt::Duration as WireDuration;
use std::time::Duration;

/// What a lookup made of the answer "not found".
fn found<T>(
    answer: google_cloud_pubsub::Result<T>,
    what: &'static str,
    name: &str,
) -> Result<Option<T>, AdminError> {
    let made = |source| AdminError { what, name: name.to_owned(), source };
    match answer.map_err(made) {
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
        Ok(one) => Ok(Some(one)),
    }
}

impl Broker {
    /// Makes what is missing and leaves what exists as it is.
    ///
    /// # Errors
    /// The first admin call that failed.
    pub async fn ensure(&self, topology: &Topology) -> Result<(), AdminError> {
        for topic in topology.all_topics() {
            self.ensure_topic(&topic).await?;
        }
        for spec in topology.all_subscriptions() {
            self.ensure_subscription(&spec).await?;
        }
        Ok(())
    }

    /// Makes a topic if it is not there.
    ///
    /// # Errors
    /// The admin call failed, other than by finding the topic.
    pub async fn ensure_topic(&self, topic: &str) -> Result<(), AdminError> {
        let made = self.inner.topics.create_topic().set_name(self.topic_name(topic)).send().await;
        settle(made.map(drop), "topic", topic)
    }

    /// Makes a subscription if it is not there. An existing one is left as it is.
    ///
    /// # Errors
    /// The admin call failed, other than by finding the subscription.
    pub async fn ensure_subscription(&self, spec: &SubscriptionSpec) -> Result<(), AdminError> {
        let wanted = self.wire(spec);
        let made = self.inner.subscriptions.create_subscription().with_request(wanted).send().await;
        settle(made.map(drop), "subscription", &spec.subscription)
    }

    /// Asks whether the subscription exists and can be seen.
    ///
    /// # Errors
    /// Not found, not permitted, or no answer within 5 s.
    pub async fn probe_subscription(&self, subscription: &str) -> Result<(), AdminError> {
        let name = self.subscription_name(subscription);
        let answer = self.inner.subscriptions.get_subscription().set_subscription(name).send().await;
        answer.map(drop).map_err(|source| AdminError {
            what: "subscription",
            name: subscription.to_owned(),
            source,
        })
    }

    /// Asks whether a topic exists.
    ///
    /// # Errors
    /// Not permitted, or no answer within 5 s.
    pub async fn has_topic(&self, topic: &str) -> Result<bool, AdminError> {
        let answer = self.inner.topics.get_topic().set_topic(self.topic_name(topic)).send().await;
        Ok(found(answer, "topic", topic)?.is_some())
    }

    /// Ids of the subscriptions of a topic; those of other projects by their full names. `None`: no such topic.
    ///
    /// # Errors
    /// Not permitted, or no answer within 5 s.
    pub async fn subscriptions_of(&self, topic: &str) -> Result<Option<Vec<String>>, AdminError> {
        let own = self.subscription_name("");
        let mut ids = Vec::new();
        let mut names =
            self.inner.topics.list_topic_subscriptions().set_topic(self.topic_name(topic)).by_item();
        while let Some(name) = names.next().await {
            let Some(name) = found(name, "topic", topic)? else { return Ok(None) };
            ids.push(name.strip_prefix(&own).map_or(name.clone(), str::to_owned));
        }
        Ok(Some(ids))
    }

    /// Where a subscription's dead letters go; the topic's id, or its full name in another project.
    ///
    /// # Errors
    /// Not permitted, or no answer within 5 s.
    pub async fn dead_letters_of(&self, subscription: &str) -> Result<Option<DeadLetter>, AdminError> {
        let Some(actual) = self.actual(subscription).await? else { return Ok(None) };
        Ok(actual.dead_letter_policy.map(|policy| DeadLetter {
            topic: self.topic_id(&policy.dead_letter_topic),
            max_delivery_attempts: u8::try_from(policy.max_delivery_attempts).unwrap_or(u8::MAX),
        }))
    }

    /// A subscription as the broker has it.
    pub(crate) async fn actual(&self, subscription: &str) -> Result<Option<Subscription>, AdminError> {
        let name = self.subscription_name(subscription);
        let answer = self.inner.subscriptions.get_subscription().set_subscription(name).send().await;
        found(answer, "subscription", subscription)
    }

    /// The id of a topic of this project, the full name of another's.
    pub(crate) fn topic_id(&self, name: &str) -> String {
        name.strip_prefix(&self.topic_name("")).unwrap_or(name).to_owned()
    }

    /// A declared subscription in the protocol's words.
    pub(crate) fn wire(&self, spec: &SubscriptionSpec) -> Subscription {
        let retry = RetryPolicy::new()
            .set_minimum_backoff(wire(spec.min_backoff))
            .set_maximum_backoff(wire(spec.max_backoff));
        let deadline = i32::try_from(spec.ack_deadline.as_secs()).unwrap_or(600).clamp(10, 600);
        let mut wanted = Subscription::new()
            .set_name(self.subscription_name(&spec.subscription))
            .set_topic(self.topic_name(&spec.topic))
            .set_ack_deadline_seconds(deadline)
            .set_message_retention_duration(wire(spec.retention))
            .set_enable_message_ordering(spec.ordered)
            .set_filter(spec.filter.clone().unwrap_or_default())
            .set_expiration_policy(ExpirationPolicy::new())
            .set_retry_policy(retry);
        if let Some(dead) = &spec.dead_letter {
            let policy = DeadLetterPolicy::new()
                .set_dead_letter_topic(self.topic_name(&dead.topic))
                .set_max_delivery_attempts(i32::from(dead.max_delivery_attempts));
            wanted = wanted.set_dead_letter_policy(policy);
        }
        wanted
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
        i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        i32::try_from(duration.subsec_nanos()).unwrap_or(0),
    )
}
