//! Dead letters: when a message leaves its subscription and what it carries.

use crate::wire::{Stored, timestamp};
use googleapis_tonic_google_pubsub_v1::google::pubsub::v1 as pb;
use prost::Message;
use std::sync::Arc;

/// A message that used up its delivery attempts.
#[derive(Debug, Clone)]
pub(crate) struct Forward {
    pub(crate) position: u64,
    pub(crate) failures: u32,
    pub(crate) topic: String,
    pub(crate) stored: Arc<Stored>,
}

/// The message published to the dead-letter topic: the original's data, attributes and key plus the
/// attributes that name its source. The service gives it a new id and publish time.
pub(crate) fn forwarded(dead: &Forward, subscription: &str) -> Result<pb::PubsubMessage, prost::DecodeError> {
    let mut message = pb::PubsubMessage::decode(dead.stored.wire.clone())?;
    let mut parts = subscription.split('/');
    let project = parts.nth(1).unwrap_or_default();
    let short = parts.next_back().unwrap_or_default();
    let mut add = |name: &str, value: String| {
        message.attributes.insert(format!("CloudPubSubDeadLetterSource{name}"), value);
    };
    add("Subscription", short.to_owned());
    add("SubscriptionProject", project.to_owned());
    add("DeliveryCount", dead.failures.to_string());
    add("TopicPublishTime", timestamp(dead.stored.published).to_string());
    message.message_id.clear();
    message.publish_time = None;
    Ok(message)
}

#[cfg(test)]
mod tests {
    use crate::state::fixture::{Bench, rules};
    use crate::state::queue::DeadLetterRule;
    use anyhow::{Context, Result};

    #[test]
    fn forwards_after_the_last_attempt_with_source_attributes() -> Result<()> {
        let mut rules = rules();
        rules.dead_letter = Some(DeadLetterRule { topic: "projects/p/topics/dead".into(), attempts: 2 });
        let mut bench = Bench::new(rules);
        bench.publish(&[("", "poison")]);
        let first = bench.take();
        assert_eq!(first[0].attempt, 1);
        assert!(bench.nack(&first[0]).forward.is_empty());
        let second = bench.take();
        assert_eq!(second[0].attempt, 2);
        let effects = bench.nack(&second[0]);
        let dead = effects.forward.first().context("nothing forwarded")?;
        let message = super::forwarded(dead, "projects/p/subscriptions/s")?;
        let got: Vec<(&str, &str)> =
            message.attributes.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(got[0], ("CloudPubSubDeadLetterSourceDeliveryCount", "2"));
        assert_eq!(got[1], ("CloudPubSubDeadLetterSourceSubscription", "s"));
        assert_eq!(got[2], ("CloudPubSubDeadLetterSourceSubscriptionProject", "p"));
        assert_eq!(got[3].0, "CloudPubSubDeadLetterSourceTopicPublishTime");
        assert!(bench.take().is_empty());
        bench.queue.finish_forward(dead.position, true, bench.now);
        assert_eq!(bench.queue.unacked(), 0);
        Ok(())
    }

    #[test]
    fn a_failed_forward_is_delivered_again() {
        let mut rules = rules();
        rules.dead_letter = Some(DeadLetterRule { topic: "projects/p/topics/gone".into(), attempts: 1 });
        let mut bench = Bench::new(rules);
        bench.publish(&[("", "poison")]);
        let first = bench.take();
        let effects = bench.nack(&first[0]);
        bench.queue.finish_forward(effects.forward[0].position, false, bench.now);
        assert_eq!(bench.take().len(), 1);
    }
}
