//! Giving one batch to the broker.

use crate::gate::Gate;
use crate::spans;
use backline_broker::{Broker, Outgoing, PublishError};
use backline_crash_point::seeded_bug;
use backline_outbox::drain::{Confirmed, Entry, Refused};
use bytes::Bytes;
use std::collections::HashMap;
use tokio::time::Instant;

/// What to do about a topic that does not exist.
const MISSING_TOPIC: &str = "there is no such topic: `backline topology apply` makes what the workers named to it declare, \
                             and with --topic what producers alone name";

/// What the broker said about a batch.
#[derive(Debug, Default)]
pub(crate) struct HandedOver {
    /// Confirmed entries: the only ones that may leave the outbox.
    pub(crate) confirmed: Vec<Confirmed>,
    /// Entries the broker will never take.
    pub(crate) refused: Vec<Refused>,
    /// Some entries are neither: they stay, and so does the mark.
    pub(crate) incomplete: bool,
}

impl HandedOver {
    /// For the seeded bugs that do not wait for the broker's word.
    pub(crate) fn presumed(entries: &[Entry]) -> Self {
        let confirmed = |entry: &Entry| Confirmed { seq: entry.seq, message_id: "presumed".to_owned() };
        Self { confirmed: entries.iter().map(confirmed).collect(), ..Self::default() }
    }
}

/// Publishes a batch of one lane, topic by topic. Entries of one topic go out in order.
pub(crate) async fn hand_over(broker: &Broker, gate: &Gate, lane: i16, entries: Vec<Entry>) -> HandedOver {
    let mut result = HandedOver::default();
    // The lane is the ordering key: a bounded set, and one request can carry many aggregates.
    let ordering_key = format!("lane-{lane:02}");
    let all = seeded_bug(2).then(|| HandedOver::presumed(&entries));
    for (topic, entries) in by_topic(entries) {
        let Some(admission) = gate.admit(&topic, Instant::now()) else {
            result.incomplete = true;
            continue;
        };
        let (since, sent) = (backline_telemetry::now(), Instant::now());
        let answers = broker.publish_batch(&topic, Some(&ordering_key), &entries).await;
        metrics::histogram!("backline_relay_publish_seconds").record(sent.elapsed().as_secs_f64());
        let mut outage = None;
        for (Waiting(entry), answer) in entries.into_iter().zip(answers) {
            spans::sent(&entry, &ordering_key, since, &answer);
            let seq = entry.seq;
            match answer {
                Ok(message_id) => result.confirmed.push(Confirmed { seq, message_id }),
                Err(PublishError::Refused { reason }) => result.refused.push(Refused { seq, reason }),
                Err(error @ PublishError::Outage { .. }) => {
                    result.incomplete = true;
                    outage.get_or_insert(error);
                }
                Err(PublishError::NotSent) => result.incomplete = true,
            }
        }
        if let Some(error) = outage {
            let missing = matches!(&error, PublishError::Outage { code, .. } if code == "NOT_FOUND");
            let advice = missing.then_some(MISSING_TOPIC);
            tracing::warn!(topic, lane, %error, advice, "topic unavailable, nothing is parked");
            metrics::counter!("backline_relay_outages_total", "topic" => topic.clone()).increment(1);
            admission.failed(Instant::now());
        } else {
            admission.succeeded();
        }
    }
    match all {
        // One confirmation is taken for the whole batch's.
        Some(all) if !result.confirmed.is_empty() => all,
        _ => result,
    }
}

fn by_topic(entries: Vec<Entry>) -> Vec<(String, Vec<Waiting>)> {
    let mut groups: Vec<(String, Vec<Waiting>)> = Vec::new();
    for entry in entries {
        match groups.iter_mut().find(|(topic, _)| *topic == entry.topic) {
            Some((_, group)) => group.push(Waiting(entry)),
            None => groups.push((entry.topic.clone(), vec![Waiting(entry)])),
        }
    }
    groups
}

/// An entry as the broker sees it.
struct Waiting(Entry);

impl Outgoing for Waiting {
    fn attributes(&self) -> HashMap<String, String> {
        self.0.envelope.to_attributes()
    }

    fn data(&self) -> Bytes {
        Bytes::copy_from_slice(self.0.envelope.payload.as_str().as_bytes())
    }
}
