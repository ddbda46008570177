//! The story of one event.

use super::rows::clock;
use crate::output::span;
use serde::Serialize;
use sqlx::PgPool;
use time::OffsetDateTime;
use uuid::Uuid;

#[derive(Debug, Serialize)]
pub(crate) struct EventStory {
    /// The entry that waits, and every confirmed publication; an event that was offered again has several.
    entries: Vec<Entry>,
    consumers: Vec<Consumer>,
    related: Vec<Related>,
    /// Of the topic that a waiting entry names; absent when none waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    topic: Option<Topic>,
}

/// What the broker says of the topic of an entry that waits.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Topic {
    There,
    Missing,
    /// No broker was named.
    Unasked,
    /// Why it could not be found out.
    Unseen(String),
}

#[derive(Debug, Serialize)]
struct Entry {
    id: Uuid,
    event_type: String,
    schema_version: i32,
    organization: Option<Uuid>,
    aggregate_type: String,
    aggregate_id: String,
    aggregate_version: Option<i64>,
    topic: String,
    correlation_id: Uuid,
    causation_id: Option<Uuid>,
    #[serde(with = "time::serde::rfc3339")]
    occurred_at: OffsetDateTime,
    lane: i16,
    offers: i32,
    failures: i32,
    #[serde(with = "time::serde::rfc3339::option")]
    parked_at: Option<OffsetDateTime>,
    parked_reason: Option<String>,
    message_id: Option<String>,
    #[serde(with = "time::serde::rfc3339::option")]
    published_at: Option<OffsetDateTime>,
    lane_owner: Option<String>,
}

#[derive(Debug, Serialize)]
struct Consumer {
    consumer: String,
    #[serde(with = "time::serde::rfc3339::option")]
    sealed_at: Option<OffsetDateTime>,
    reoffer_seconds: Option<f64>,
    parked_state: Option<String>,
    parked_reason: Option<String>,
}

#[derive(Debug, Serialize)]
struct Related {
    id: Uuid,
    kind: String,
    operation_key: String,
    state: String,
    causation_id: Option<Uuid>,
}

impl EventStory {
    /// `None`: no such event is kept here.
    pub(crate) async fn load(pool: &PgPool, id: Uuid) -> sqlx::Result<Option<Self>> {
        let entries = sqlx::query_file_as!(Entry, "sql/event.sql", id).fetch_all(pool).await?;
        let Some(first) = entries.first() else { return Ok(None) };
        let consumers =
            sqlx::query_file_as!(Consumer, "sql/consumers.sql", id, first.event_type).fetch_all(pool).await?;
        let related =
            sqlx::query_file_as!(Related, "sql/related.sql", first.correlation_id, first.occurred_at)
                .fetch_all(pool)
                .await?;
        Ok(Some(Self { entries, consumers, related, topic: None }))
    }

    /// The topic of an entry that waits for the broker.
    pub(crate) fn waits_for(&self) -> Option<String> {
        let waits = |entry: &&Entry| entry.published_at.is_none() && entry.parked_at.is_none();
        self.entries.iter().find(waits).map(|entry| entry.topic.clone())
    }

    pub(crate) fn set_topic(&mut self, topic: Topic) {
        self.topic = Some(topic);
    }

    /// Operations of the same business request, in order of acceptance.
    pub(crate) fn caused_ids(&self) -> Vec<Uuid> {
        let mut ids: Vec<Uuid> = Vec::new();
        // A reconcile operation has one outcome per generation.
        for related in &self.related {
            if !ids.contains(&related.id) {
                ids.push(related.id);
            }
        }
        ids
    }

    /// One page for people; the operations follow on their own.
    pub(crate) fn page(&self) -> String {
        let Some(first) = self.entries.first() else { return String::new() };
        let mut lines = vec![
            format!("event {}  {} v{}", first.id, first.event_type, first.schema_version),
            format!(
                "  {} {}, organization {}",
                first.aggregate_type,
                first.aggregate_id,
                first.organization.map_or_else(|| "-".to_owned(), |organization| organization.to_string())
            ),
            format!(
                "  {}  committed with the business change (lane {})",
                clock(first.occurred_at),
                first.lane
            ),
        ];
        lines.extend(self.entries.iter().flat_map(|entry| handed_over(entry, self.topic.as_ref())));
        lines.extend(self.consumers.iter().map(sealed));
        let caused =
            self.related.iter().map(|one| format!("  caused: {} {} {}", one.kind, one.id, one.state));
        lines.extend(caused);
        lines.join("\n")
    }
}

fn handed_over(entry: &Entry, topic: Option<&Topic>) -> Vec<String> {
    match (entry.published_at, entry.parked_at) {
        (Some(at), _) => {
            let message = entry.message_id.as_deref().unwrap_or("-");
            vec![format!("  {}  published: the broker confirmed it as message {message}", clock(at))]
        }
        (None, Some(at)) => {
            let reason = entry.parked_reason.as_deref().unwrap_or("no reason stored");
            vec![format!("  {}  PARKED, an explicit gap in its lane: {reason}", clock(at))]
        }
        (None, None) => {
            let owner = entry.lane_owner.as_deref().unwrap_or("no relay");
            vec![
                format!(
                    "  now: waits in the outbox for the broker's confirmation ({owner} has lane {})",
                    entry.lane
                ),
                waits_because(&entry.topic, topic),
            ]
        }
    }
}

/// Why an entry waits, as far as is known, and what may be done.
fn waits_because(topic: &str, state: Option<&Topic>) -> String {
    match state {
        Some(Topic::Missing) => format!(
            "  why: topic {topic} does not exist; the entry goes out when it does\n  you may: {}",
            crate::doctor::make_topic(topic)
        ),
        Some(Topic::There) => "  you may: start a relay if none runs; see `backline doctor`".to_owned(),
        Some(Topic::Unseen(why)) => {
            format!("  whether topic {topic} exists is not known: {why}\n  you may: see `backline doctor`")
        }
        Some(Topic::Unasked) | None => format!(
            "  you may: start a relay if none runs; see `backline doctor`. Whether topic {topic} exists is told when \
             PUBSUB_PROJECT_ID or PUBSUB_EMULATOR_HOST is set"
        ),
    }
}

fn sealed(consumer: &Consumer) -> String {
    let name = &consumer.consumer;
    if let Some(at) = consumer.sealed_at {
        return format!("  {}  consumer {name} accepted it: its intents are durable", clock(at));
    }
    if let Some(state) = &consumer.parked_state {
        let reason = consumer.parked_reason.as_deref().unwrap_or("-");
        return format!("  now: consumer {name} set its delivery aside ({state}): {reason}");
    }
    let again = consumer.reoffer_seconds.map_or_else(|| "never".to_owned(), span);
    format!("  now: consumer {name} has not accepted it; it is offered again {again} after publication")
}
