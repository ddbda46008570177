//! What a program needs of the broker, as a value: the program itself lives by it, and `backline topology` reads it.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The broker keeps what nobody has acknowledged for this long by default; the intake's watermark counts on it.
const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);
/// The longest the broker keeps anything: dead letters wait for people.
const LONGEST_RETENTION: Duration = Duration::from_secs(31 * 24 * 3600);
const MINUTE: Duration = Duration::from_secs(60);

/// Where entries go that the broker gave up on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeadLetter {
    /// Topic id; must have a subscription, or entries are lost there: [`DeadLetter::kept_in`].
    pub topic: String,
    /// Deliveries before that, 5 to 100, counted approximately by the broker.
    pub max_delivery_attempts: u8,
}

impl DeadLetter {
    /// Id of the subscription that keeps what arrives on the topic.
    #[must_use]
    pub fn kept_in(&self) -> String {
        format!("{}.kept", self.topic)
    }
}

/// What a consumer's subscription looks like. It never expires: the broker's default deletes an idle one after 31 days.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SubscriptionSpec {
    /// Subscription id.
    pub subscription: String,
    /// Topic id.
    pub topic: String,
    /// Lease of a delivery before it is extended, 10 to 600 s.
    #[serde(with = "span")]
    pub ack_deadline: Duration,
    /// Shortest delay before redelivery, 0 to 600 s. Without a retry policy redelivery is immediate.
    #[serde(with = "span")]
    pub min_backoff: Duration,
    /// Longest delay before redelivery, 0 to 600 s.
    #[serde(with = "span")]
    pub max_backoff: Duration,
    /// How long unacknowledged entries are kept, 10 min to 31 days.
    #[serde(with = "span")]
    pub retention: Duration,
    /// Whether entries of one ordering key come in order. Fixed at creation.
    pub ordered: bool,
    /// Filter over attributes, at most 256 bytes. Fixed at creation; what it leaves out is gone for this subscription, so
    /// it must let through every event type that the consumer owes a seal.
    pub filter: Option<String>,
    /// Dead letters; `None` keeps trying until retention ends.
    pub dead_letter: Option<DeadLetter>,
}

impl Default for SubscriptionSpec {
    /// Only for the fields that a written declaration leaves out; it has no names.
    fn default() -> Self {
        Self::new("", "")
    }
}

impl SubscriptionSpec {
    /// An ordered subscription with a lease of 60 s, redelivery after 1 to 60 s, a week's retention, no filter and no
    /// dead letters.
    #[must_use]
    pub fn new(subscription: impl Into<String>, topic: impl Into<String>) -> Self {
        Self {
            subscription: subscription.into(),
            topic: topic.into(),
            ack_deadline: MINUTE,
            min_backoff: Duration::from_secs(1),
            max_backoff: MINUTE,
            retention: WEEK,
            ordered: true,
            filter: None,
            dead_letter: None,
        }
    }

    /// The usual subscription of a consumer, `<topic>.<consumer>`, with dead letters at `<topic>.<consumer>.dead`.
    ///
    /// They come after 100 deliveries, the broker's most. A consumer settles what it cannot read by itself, so this many
    /// failures mean a fault that lasts (an hour and a half of them at the longest backoff), and the entry would hold up
    /// every later one of its ordering key until retention ends. The outbox offers an unsealed event again in any case.
    #[must_use]
    pub fn of_consumer(topic: &str, consumer: &str) -> Self {
        let subscription = format!("{topic}.{consumer}");
        let dead = DeadLetter { topic: format!("{subscription}.dead"), max_delivery_attempts: 100 };
        Self { dead_letter: Some(dead), ..Self::new(subscription, topic) }
    }

    /// The subscription that keeps dead letters: as long as the broker can, and without order, so that one which nobody
    /// can settle holds up no other.
    #[must_use]
    pub fn keeping(dead: &DeadLetter) -> Self {
        Self { retention: LONGEST_RETENTION, ordered: false, ..Self::new(dead.kept_in(), &dead.topic) }
    }

    fn check(&self) -> Result<(), TopologyError> {
        let bad = |field, reason: &str| {
            Err(TopologyError::Field {
                subscription: self.subscription.clone(),
                field,
                reason: reason.to_owned(),
            })
        };
        let longest = Duration::from_secs(600);
        check_id("subscription", &self.subscription)?;
        check_id("topic", &self.topic)?;
        if !(Duration::from_secs(10)..=longest).contains(&self.ack_deadline) {
            return bad("ack_deadline", "is not between 10s and 600s");
        }
        if self.max_backoff > longest || self.min_backoff > self.max_backoff {
            return bad("min_backoff, max_backoff", "are not in order, or above 600s");
        }
        if !(MINUTE * 10..=LONGEST_RETENTION).contains(&self.retention) {
            return bad("retention", "is not between 10min and 31days");
        }
        if self.filter.as_ref().is_some_and(|filter| filter.is_empty() || filter.len() > 256) {
            return bad("filter", "is empty or longer than 256 bytes");
        }
        match &self.dead_letter {
            Some(dead) if !(5..=100).contains(&dead.max_delivery_attempts) => {
                bad("dead_letter.max_delivery_attempts", "is not between 5 and 100")
            }
            Some(dead) if dead.topic == self.topic => {
                bad("dead_letter.topic", "is the topic it reads: dead letters would come round for ever")
            }
            Some(dead) => check_id("topic", &dead.topic),
            None => Ok(()),
        }
    }
}

/// Topics and subscriptions that a program declares.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Topology {
    /// Who needs them, for people.
    pub declared_by: String,
    /// Topic ids beyond those of `subscriptions`: what is published and nobody here reads.
    pub topics: Vec<String>,
    /// Subscriptions; their topics and those of their dead letters are declared with them.
    pub subscriptions: Vec<SubscriptionSpec>,
}

impl Topology {
    /// Every topic id, each once: read, published to, and of dead letters.
    #[must_use]
    pub fn all_topics(&self) -> Vec<String> {
        let read = self.subscriptions.iter().map(|spec| &spec.topic);
        let dead = self.subscriptions.iter().filter_map(|spec| Some(&spec.dead_letter.as_ref()?.topic));
        let mut all = Vec::new();
        for topic in self.topics.iter().chain(read).chain(dead) {
            if !all.contains(topic) {
                all.push(topic.clone());
            }
        }
        all
    }

    /// Every subscription. Those that keep dead letters come first: nothing is forwarded before it would be kept.
    #[must_use]
    pub fn all_subscriptions(&self) -> Vec<SubscriptionSpec> {
        let mut all: Vec<SubscriptionSpec> = Vec::new();
        for dead in self.subscriptions.iter().filter_map(|spec| spec.dead_letter.as_ref()) {
            let id = dead.kept_in();
            // A declaration may say itself how they are kept.
            let known = self.subscriptions.iter().chain(&all).any(|spec| spec.subscription == id);
            if !known {
                all.push(SubscriptionSpec::keeping(dead));
            }
        }
        all.extend(self.subscriptions.iter().cloned());
        all
    }

    /// One declaration of several: what they share is declared once.
    ///
    /// # Errors
    /// A value the broker would refuse, or two different declarations of one subscription.
    pub fn merged(parts: Vec<Self>) -> Result<Self, TopologyError> {
        let mut all = Self::default();
        let mut names: Vec<String> = Vec::new();
        for part in parts {
            for topic in part.topics {
                check_id("topic", &topic)?;
                if !all.topics.contains(&topic) {
                    all.topics.push(topic);
                }
            }
            for spec in part.subscriptions {
                spec.check()?;
                match all.subscriptions.iter().find(|known| known.subscription == spec.subscription) {
                    None => all.subscriptions.push(spec),
                    Some(known) if *known == spec => {}
                    Some(_) => return Err(TopologyError::Contradiction(spec.subscription)),
                }
            }
            if !part.declared_by.is_empty() && !names.contains(&part.declared_by) {
                names.push(part.declared_by);
            }
        }
        all.declared_by = names.join(", ");
        Ok(all)
    }
}

/// A declaration that cannot be made true.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum TopologyError {
    /// A value the broker would refuse.
    #[error("subscription `{subscription}`: {field} {reason}")]
    Field {
        /// Whose.
        subscription: String,
        /// Which.
        field: &'static str,
        /// Why not.
        reason: String,
    },
    /// An id the broker would refuse.
    #[error("{what} id `{id}`: give 3 to 255 letters, digits or -_.~+%, a letter first, and not `goog`")]
    Id {
        /// `topic` or `subscription`.
        what: &'static str,
        /// The id.
        id: String,
    },
    /// Two programs want one subscription to be different things.
    #[error("subscription `{0}` is declared twice, differently")]
    Contradiction(String),
}

/// Naming rules: <https://cloud.google.com/pubsub/docs/pubsub-basics#resource_names>.
fn check_id(what: &'static str, id: &str) -> Result<(), TopologyError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.~+%".contains(c);
    let good = (3..=255).contains(&id.len())
        && id.starts_with(|c: char| c.is_ascii_alphabetic())
        && id.chars().all(fits)
        && !id.starts_with("goog");
    if good { Ok(()) } else { Err(TopologyError::Id { what, id: id.to_owned() }) }
}

/// A duration as people write it in declarations: `31d`, where calendars would make months of it.
#[must_use]
pub fn written(span: Duration) -> String {
    const DAY: u64 = 24 * 3600;
    match span.as_secs() {
        seconds if span.subsec_nanos() == 0 && seconds > 0 && seconds % DAY == 0 => {
            format!("{}d", seconds / DAY)
        }
        _ => humantime::format_duration(span).to_string(),
    }
}

/// Durations as people write them.
mod span {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use std::time::Duration;

    pub(super) fn serialize<S: Serializer>(span: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&super::written(*span))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        humantime::parse_duration(&String::deserialize(from)?).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::{SubscriptionSpec, Topology, TopologyError};

    fn of(spec: SubscriptionSpec) -> Topology {
        Topology { subscriptions: vec![spec], ..Topology::default() }
    }

    #[test]
    fn a_consumer_declares_its_topics_and_where_its_dead_letters_are_kept() {
        let all = of(SubscriptionSpec::of_consumer("events", "letters"));
        assert_eq!(all.all_topics(), ["events", "events.letters.dead"]);
        let ids: Vec<_> = all.all_subscriptions().into_iter().map(|spec| spec.subscription).collect();
        assert_eq!(ids, ["events.letters.dead.kept", "events.letters"]);
    }

    #[test]
    fn shared_parts_are_declared_once_and_contradictions_are_named() {
        let usual = SubscriptionSpec::of_consumer("events", "letters");
        let merged = Topology::merged(vec![of(usual.clone()), of(usual.clone())]);
        assert_eq!(merged.map(|all| all.subscriptions), Ok(vec![usual.clone()]));
        let other = SubscriptionSpec { ordered: false, ..usual.clone() };
        let contradiction = TopologyError::Contradiction("events.letters".to_owned());
        assert_eq!(Topology::merged(vec![of(usual.clone()), of(other)]), Err(contradiction));
        let short = SubscriptionSpec { ack_deadline: std::time::Duration::from_secs(1), ..usual };
        let refusal = Topology::merged(vec![of(short)]).err().map(|error| error.to_string());
        assert!(refusal.is_some_and(|text| text.contains("ack_deadline")));
    }
}
