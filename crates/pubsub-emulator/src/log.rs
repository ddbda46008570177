//! What was accepted, for checkers: `GET /log`, one JSON object a line.

use bytes::{Bytes, BytesMut};
use googleapis_tonic_google_pubsub_v1::google::pubsub::v1 as pb;
use parking_lot::Mutex;
use prost::Message;
use serde_json::json;
use std::collections::VecDeque;
use std::sync::Arc;

/// One accepted message, without its data.
#[derive(Clone)]
pub(crate) struct Accepted {
    pub(crate) topic: Arc<str>,
    /// The encoded message without data: attributes as a map are five times as large.
    pub(crate) head: Bytes,
    pub(crate) digest: [u8; 32],
    pub(crate) size: usize,
    /// Deliveries per subscription because of a duplicate fault, 1 without.
    pub(crate) copies: u32,
}

impl Accepted {
    /// Describes `message`, taking its data and encoding its head at the end of `buffer`.
    pub(crate) fn of(
        topic: &Arc<str>,
        message: &mut pb::PubsubMessage,
        copies: u32,
        buffer: &mut BytesMut,
    ) -> Self {
        use sha2::Digest;
        let data = std::mem::take(&mut message.data);
        message.encode_raw(buffer);
        Self {
            topic: Arc::clone(topic),
            head: buffer.split().freeze(),
            digest: sha2::Sha256::digest(&data).into(),
            size: data.len(),
            copies,
        }
    }

    fn line(&self, seq: u64) -> String {
        let head = pb::PubsubMessage::decode(self.head.clone()).unwrap_or_default();
        let line = json!({
            "seq": seq,
            "topic": &*self.topic,
            "message_id": head.message_id,
            "publish_time": head.publish_time.map(|at| at.to_string()),
            "ordering_key": head.ordering_key,
            "attributes": head.attributes,
            "data_sha256": hex::encode(self.digest),
            "data_bytes": self.size,
            "copies": self.copies,
        });
        format!("{line}\n")
    }
}

#[derive(Default)]
struct Lines {
    entries: VecDeque<Accepted>,
    /// Sequence number of the first entry kept.
    first: u64,
}

/// Bounded record of accepted messages, in order of acceptance.
pub(crate) struct Log {
    limit: usize,
    lines: Mutex<Lines>,
}

impl Log {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, lines: Mutex::new(Lines { entries: VecDeque::new(), first: 1 }) }
    }

    /// Whether anything is kept at all.
    pub(crate) fn enabled(&self) -> bool {
        self.limit > 0
    }

    pub(crate) fn append(&self, accepted: Vec<Accepted>) {
        let mut lines = self.lines.lock();
        lines.entries.extend(accepted);
        while lines.entries.len() > self.limit {
            lines.entries.pop_front();
            lines.first += 1;
        }
    }

    /// Up to `count` lines from sequence number `from` on, and the number to go on with; `None` at the end.
    pub(crate) fn read(&self, from: u64, count: usize, topic: Option<&str>) -> Option<(String, u64)> {
        let (entries, start) = {
            let lines = self.lines.lock();
            let start = from.max(lines.first);
            let skip = usize::try_from(start - lines.first).unwrap_or(usize::MAX);
            (lines.entries.iter().skip(skip).take(count).cloned().collect::<Vec<_>>(), start)
        };
        if entries.is_empty() {
            return None;
        }
        let numbered = (start..).zip(&entries);
        let text = numbered
            .filter(|(_, e)| topic.is_none_or(|t| t == &*e.topic))
            .map(|(seq, e)| e.line(seq))
            .collect();
        Some((text, start + entries.len() as u64))
    }

    /// Forgets everything; numbering goes on.
    pub(crate) fn clear(&self) {
        let mut lines = self.lines.lock();
        lines.first += lines.entries.len() as u64;
        lines.entries.clear();
    }

    /// Entries kept, and entries dropped or cleared before them.
    pub(crate) fn size(&self) -> (usize, u64) {
        let lines = self.lines.lock();
        (lines.entries.len(), lines.first - 1)
    }
}
