//! Giving one batch to the broker.

use crate::gate::Gate;
use backline_broker::{Broker, Outgoing, PublishError};
use backline_outbox::drain::{Confirmed, Entry, Refused};
use bytes::Bytes;
use tokio::time::Instant;

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

/// Publishes a batch of one lane, topic by topic. Entries of one topic go out in order.
pub(crate) async fn hand_over(broker: &Broker, gate: &Gate, lane: i16, entries: Vec<Entry>) -> HandedOver {
    let mut result = HandedOver::default();
    // The lane is the ordering key: a bounded set, and one request can carry many aggregates.
    let ordering_key = format!("lane-{lane:02}");
    for (topic, entries) in by_topic(entries) {
        let Some(admission) = gate.admit(&topic, Instant::now()) else {
            result.incomplete = true;
            continue;
        };
        let (seqs, outgoing): (Vec<i64>, Vec<Outgoing>) = entries.into_iter().map(outgoing).unzip();
        let answers = broker.publish_batch(&topic, Some(&ordering_key), outgoing).await;
        let mut outage = None;
        for (seq, answer) in seqs.into_iter().zip(answers) {
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
            tracing::warn!(topic, lane, %error, "topic unavailable, nothing is parked");
            metrics::counter!("backline_relay_outages_total", "topic" => topic.clone()).increment(1);
            admission.failed(Instant::now());
        } else {
            admission.succeeded();
        }
    }
    result
}

fn by_topic(entries: Vec<Entry>) -> Vec<(String, Vec<Entry>)> {
    let mut groups: Vec<(String, Vec<Entry>)> = Vec::new();
    for entry in entries {
        match groups.iter_mut().find(|(topic, _)| *topic == entry.topic) {
            Some((_, group)) => group.push(entry),
            None => groups.push((entry.topic.clone(), vec![entry])),
        }
    }
    groups
}

fn outgoing(entry: Entry) -> (i64, Outgoing) {
    let attributes = entry.envelope.to_attributes();
    (entry.seq, Outgoing { attributes, data: Bytes::from(entry.envelope.payload.into_string()) })
}
