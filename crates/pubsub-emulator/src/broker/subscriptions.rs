//! Subscriptions: create, read, change, detach, delete.

use super::pages::{Page, page};
use super::subscription::Subscription;
use super::subscription_rules::rules;
use super::{Broker, exists};
use crate::persist::{Kind, SubscriptionRecord};
use googleapis_tonic_google_pubsub_v1::google::pubsub::v1 as pb;
use std::sync::Arc;
use tonic::Status;

impl Broker {
    /// Creates a subscription; it receives what is published from now on.
    pub(crate) fn create_subscription(
        self: &Arc<Self>,
        mut config: pb::Subscription,
    ) -> Result<pb::Subscription, Status> {
        let _admin = self.admin.lock();
        self.check_subscription(&mut config)?;
        config.state = pb::subscription::State::Active.into();
        config.detached = false;
        if self.subscriptions.read().contains_key(&config.name) {
            return Err(exists("subscription", &config.name));
        }
        let topic = self.topic(&config.topic)?;
        let id = Self::next(&self.next_subscription, 1);
        let subscription =
            Arc::new(Subscription::new(config.clone(), id, self.first_lease, self.config.retry_backoff_cap)?);
        let mut state = topic.state.lock();
        config.topic_message_retention_duration = state.config.message_retention_duration;
        subscription.state.lock().config = config.clone();
        self.persist(|| Kind::Subscription(SubscriptionRecord { config: Some(config.clone()), id }))?;
        state.subscriptions.push(Arc::clone(&subscription));
        drop(state);
        self.start_timer(&subscription);
        self.subscriptions.write().insert(config.name.clone(), subscription);
        Ok(config)
    }

    /// Changes the fields of `mask` (names as in the protocol).
    pub(crate) fn update_subscription(
        &self,
        from: pb::Subscription,
        mask: &[String],
    ) -> Result<pb::Subscription, Status> {
        if mask.is_empty() {
            return Err(Status::invalid_argument("update_mask: names no field"));
        }
        let _admin = self.admin.lock();
        let subscription = self.subscription(&from.name)?;
        let mut config = subscription.config();
        for field in mask {
            set_field(&mut config, &from, field)?;
        }
        self.check_subscription(&mut config)?;
        self.apply(&subscription, &config)?;
        Ok(config)
    }

    /// Stores where a subscription would be pushed to. Nothing is pushed.
    pub(crate) fn modify_push_config(&self, name: &str, push: Option<pb::PushConfig>) -> Result<(), Status> {
        let _admin = self.admin.lock();
        let subscription = self.subscription(name)?;
        let mut config = subscription.config();
        config.push_config = push;
        self.apply(&subscription, &config)
    }

    fn apply(&self, subscription: &Subscription, config: &pb::Subscription) -> Result<(), Status> {
        let record = || SubscriptionRecord { config: Some(config.clone()), id: subscription.id };
        let mut state = subscription.state.lock();
        self.persist(|| Kind::Subscription(record()))?;
        state.queue.rules = rules(config, self.config.retry_backoff_cap);
        state.config = config.clone();
        Ok(())
    }

    /// Detaches a subscription: its backlog is dropped and pulls are refused.
    pub(crate) fn detach_subscription(&self, name: &str) -> Result<(), Status> {
        let _admin = self.admin.lock();
        let subscription = self.subscription(name)?;
        self.disconnect(&subscription);
        let mut config = subscription.config();
        config.detached = true;
        self.apply(&subscription, &config)?;
        let mut state = subscription.state.lock();
        state.queue.reset(Default::default(), Default::default());
        state.queue.wake_all();
        Ok(())
    }

    fn disconnect(&self, subscription: &Subscription) {
        let topic = subscription.config().topic;
        if let Ok(topic) = self.topic(&topic) {
            topic.state.lock().subscriptions.retain(|other| other.id != subscription.id);
        }
    }

    /// Deletes a subscription with its backlog; its streams end.
    pub(crate) fn delete_subscription(&self, name: &str) -> Result<(), Status> {
        let _admin = self.admin.lock();
        let subscription = self.subscription(name)?;
        self.persist(|| Kind::SubscriptionDelete(name.to_owned()))?;
        self.disconnect(&subscription);
        self.subscriptions.write().remove(name);
        subscription.retire();
        Ok(())
    }

    /// Subscriptions of a project (`projects/{project}`).
    pub(crate) fn list_subscriptions(&self, project: &str, size: i32, token: &str) -> Page<pb::Subscription> {
        let prefix = format!("{project}/subscriptions/");
        page(&self.subscriptions.read(), size, token, |name, subscription| {
            name.starts_with(&prefix).then(|| subscription.config())
        })
    }
}

fn set_field(config: &mut pb::Subscription, from: &pb::Subscription, field: &str) -> Result<(), Status> {
    match field {
        "ack_deadline_seconds" => config.ack_deadline_seconds = from.ack_deadline_seconds,
        "retain_acked_messages" => config.retain_acked_messages = from.retain_acked_messages,
        "message_retention_duration" => config.message_retention_duration = from.message_retention_duration,
        "labels" => config.labels.clone_from(&from.labels),
        "expiration_policy" => config.expiration_policy.clone_from(&from.expiration_policy),
        "dead_letter_policy" => config.dead_letter_policy.clone_from(&from.dead_letter_policy),
        "retry_policy" => config.retry_policy.clone_from(&from.retry_policy),
        "push_config" => config.push_config.clone_from(&from.push_config),
        "enable_exactly_once_delivery" => {
            config.enable_exactly_once_delivery = from.enable_exactly_once_delivery;
        }
        other => return Err(Status::invalid_argument(format!("update_mask: {other:?} cannot be updated"))),
    }
    Ok(())
}
