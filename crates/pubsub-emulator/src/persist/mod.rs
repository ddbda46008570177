//! The journal: an append-only file of what must survive a restart.
//!
//! A record is written (not synced) before the reply it backs, so a killed process loses nothing it
//! confirmed; a power cut may lose the tail. A record cut short at the end of the file is dropped.

mod record;

pub(crate) use record::{
    Acked, Backlog, Counters, Failed, Kind, MessageRecord, Published, Record, SnapshotRecord,
    SubscriptionRecord, TopicRetained,
};

use anyhow::{Context, Result};
use bytes::{Buf, Bytes, BytesMut};
use parking_lot::Mutex;
use prost::Message;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The journal of one data directory.
pub(crate) struct Journal {
    file: Mutex<File>,
}

fn path_in(dir: &Path) -> PathBuf {
    dir.join("pubsub.journal")
}

/// Every complete record of the directory's journal, oldest first.
pub(crate) fn read(dir: &Path) -> Result<Vec<Kind>> {
    let path = path_in(dir);
    let mut bytes = match fs::read(&path) {
        Ok(bytes) => Bytes::from(bytes),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(e).with_context(|| format!("journal {}: cannot be read", path.display())),
    };
    let mut kinds = Vec::new();
    while bytes.len() >= 4 {
        let length = usize::try_from(bytes.get_u32_le())?;
        if bytes.len() < length {
            tracing::warn!(missing = length - bytes.len(), "journal ends in a record cut short; dropped");
            break;
        }
        let record = Record::decode(bytes.split_to(length)).context("journal: a record is damaged")?;
        kinds.extend(record.kind);
    }
    Ok(kinds)
}

impl Journal {
    /// Replaces the directory's journal by these records and goes on appending to it.
    pub(crate) fn rewrite(dir: &Path, records: impl Iterator<Item = Kind>) -> Result<Self> {
        let (path, new) = (path_in(dir), dir.join("pubsub.journal.new"));
        let mut out = std::io::BufWriter::with_capacity(1 << 20, File::create(&new)?);
        for kind in records {
            out.write_all(&frame(kind)?)?;
        }
        out.flush()?;
        drop(out);
        fs::rename(&new, &path)?;
        let file = OpenOptions::new().append(true).open(&path)?;
        Ok(Self { file: Mutex::new(file) })
    }

    /// Appends one record. An error means the change must not be confirmed.
    pub(crate) fn append(&self, kind: Kind) -> Result<()> {
        let frame = frame(kind)?;
        self.file.lock().write_all(&frame).context("journal: write failed")
    }
}

fn frame(kind: Kind) -> Result<BytesMut> {
    let record = Record { kind: Some(kind) };
    let length = record.encoded_len();
    let mut frame = BytesMut::with_capacity(length + 4);
    frame.extend_from_slice(&u32::try_from(length)?.to_le_bytes());
    record.encode(&mut frame)?;
    Ok(frame)
}

#[cfg(test)]
mod tests {
    use super::{Journal, Kind, path_in, read};
    use anyhow::Result;

    #[test]
    fn a_record_cut_short_is_dropped() -> Result<()> {
        let dir = std::env::temp_dir().join(format!("pubsub-journal-{}", std::process::id()));
        std::fs::create_dir_all(&dir)?;
        let journal = Journal::rewrite(&dir, std::iter::empty())?;
        journal.append(Kind::TopicDelete("a".into()))?;
        journal.append(Kind::TopicDelete("b".into()))?;
        let bytes = std::fs::read(path_in(&dir))?;
        std::fs::write(path_in(&dir), &bytes[..bytes.len() - 1])?;
        assert_eq!(read(&dir)?, [Kind::TopicDelete("a".into())]);
        std::fs::remove_dir_all(&dir)?;
        Ok(())
    }
}
