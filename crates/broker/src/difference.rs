//! What is declared against what the broker has.

use crate::connect::Broker;
use crate::error::AdminError;
use crate::topology::{SubscriptionSpec, Topology, written};
use google_cloud_pubsub::model::Subscription;
use google_cloud_wkt::Duration as WireDuration;
use serde::Serialize;
use std::time::Duration;

/// What a difference is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// A topic.
    Topic,
    /// A subscription.
    Subscription,
}

impl Resource {
    /// Its name in sentences.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Topic => "topic",
            Self::Subscription => "subscription",
        }
    }
}

/// How a field can be brought to what is declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// By an update, without losing anything.
    InPlace,
    /// Only by another subscription: Pub/Sub fixes it at creation.
    Recreate,
}

/// A field that is not as declared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FieldDifference {
    /// Name of the field of [`SubscriptionSpec`], or of what every subscription of ours has.
    pub field: &'static str,
    /// What is declared.
    pub declared: String,
    /// What the broker has.
    pub actual: String,
    /// What helps.
    pub change: Change,
}

/// A topic or subscription that is not as declared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Which kind.
    pub resource: Resource,
    /// Its id.
    pub id: String,
    /// It does not exist.
    pub missing: bool,
    /// What differs where it exists.
    pub fields: Vec<FieldDifference>,
}

impl Broker {
    /// Compares a declaration with what exists, in the order in which differences can be mended.
    ///
    /// # Errors
    /// A lookup that was not permitted or had no answer; half a comparison would be read as a whole one.
    pub async fn compare(&self, wanted: &Topology) -> Result<Vec<Difference>, AdminError> {
        let mut differences = Vec::new();
        for id in wanted.all_topics() {
            if !self.has_topic(&id).await? {
                let fields = Vec::new();
                differences.push(Difference { resource: Resource::Topic, id, missing: true, fields });
            }
        }
        for spec in wanted.all_subscriptions() {
            let id = spec.subscription.clone();
            let actual = self.actual(&id).await?;
            let missing = actual.is_none();
            let fields = actual.map(|actual| self.fields(&spec, &actual)).unwrap_or_default();
            if missing || !fields.is_empty() {
                differences.push(Difference { resource: Resource::Subscription, id, missing, fields });
            }
        }
        Ok(differences)
    }

    fn fields(&self, spec: &SubscriptionSpec, actual: &Subscription) -> Vec<FieldDifference> {
        use Change::{InPlace, Recreate};
        let none = || "none".to_owned();
        let backoff = |least: Duration, most: Duration| format!("{} to {}", written(least), written(most));
        let dead = |topic: &str, attempts: i32| format!("{topic} after {attempts} deliveries");
        let ack = Duration::from_secs(u64::try_from(actual.ack_deadline_seconds).unwrap_or_default());
        let filled = |filter: &str| if filter.is_empty() { none() } else { filter.to_owned() };
        let retry = actual.retry_policy.as_ref();
        let policy = actual.dead_letter_policy.as_ref();
        let rows = [
            ("topic", Recreate, spec.topic.clone(), self.topic_id(&actual.topic)),
            ("filter", Recreate, filled(spec.filter.as_deref().unwrap_or_default()), filled(&actual.filter)),
            ("ordered", Recreate, spec.ordered.to_string(), actual.enable_message_ordering.to_string()),
            ("detached", Recreate, false.to_string(), actual.detached.to_string()),
            ("export", Recreate, none(), export(actual).map_or_else(none, str::to_owned)),
            ("push", InPlace, none(), push(actual).map_or_else(none, str::to_owned)),
            ("exactly_once", InPlace, false.to_string(), actual.enable_exactly_once_delivery.to_string()),
            ("ack_deadline", InPlace, written(spec.ack_deadline), written(ack)),
            (
                "backoff",
                InPlace,
                backoff(spec.min_backoff, spec.max_backoff),
                retry.map_or("none: redelivery is immediate".to_owned(), |retry| {
                    backoff(unwire(retry.minimum_backoff, 10), unwire(retry.maximum_backoff, 600))
                }),
            ),
            (
                "retention",
                InPlace,
                written(spec.retention),
                written(unwire(actual.message_retention_duration, WEEK)),
            ),
            ("expires", InPlace, "never".to_owned(), expiration(actual)),
            (
                "dead_letter",
                InPlace,
                spec.dead_letter
                    .as_ref()
                    .map_or_else(none, |to| dead(&to.topic, i32::from(to.max_delivery_attempts))),
                policy.map_or_else(none, |to| {
                    let attempts = if to.max_delivery_attempts == 0 { 5 } else { to.max_delivery_attempts };
                    dead(&self.topic_id(&to.dead_letter_topic), attempts)
                }),
            ),
        ];
        let differ = rows.into_iter().filter(|(_, _, declared, actual)| declared != actual);
        differ
            .map(|(field, change, declared, actual)| FieldDifference { field, declared, actual, change })
            .collect()
    }
}

/// The broker's default retention, in seconds.
const WEEK: u64 = 7 * 24 * 3600;

/// A duration of the protocol, or the broker's default in seconds.
fn unwire(duration: Option<WireDuration>, default: u64) -> Duration {
    let seconds =
        duration.as_ref().map(WireDuration::seconds).and_then(|seconds| u64::try_from(seconds).ok());
    let nanos = duration.as_ref().map(WireDuration::nanos).and_then(|nanos| u32::try_from(nanos).ok());
    Duration::new(seconds.unwrap_or(default), nanos.unwrap_or(0))
}

/// Present without a span: never. Absent: the broker's default of 31 days.
fn expiration(actual: &Subscription) -> String {
    match actual.expiration_policy.as_ref().map(|policy| policy.ttl.as_ref()) {
        Some(None) => "never".to_owned(),
        Some(Some(ttl)) => format!("when idle for {}", written(unwire(Some(*ttl), 0))),
        None => "when idle for 31d".to_owned(),
    }
}

fn push(actual: &Subscription) -> Option<&str> {
    let endpoint = actual.push_config.as_ref()?.push_endpoint.as_str();
    Some(endpoint).filter(|endpoint| !endpoint.is_empty())
}

/// A subscription that writes elsewhere cannot be read.
fn export(actual: &Subscription) -> Option<&'static str> {
    match () {
        () if actual.bigquery_config.is_some() => Some("BigQuery"),
        () if actual.cloud_storage_config.is_some() => Some("Cloud Storage"),
        () if actual.bigtable_config.is_some() => Some("Bigtable"),
        () => None,
    }
}
