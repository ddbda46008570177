//! Append-only record of every call: what checkers read, and what a restarted sandbox is rebuilt from.

mod line;

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

pub(crate) use line::{Line, Stored};

/// Writes lines in the order of their `seq`, each with one system call before the reply is sent, so that
/// a killed sandbox has told nobody about an effect that it forgets.
#[derive(Debug)]
pub(crate) struct Journal {
    file: Option<(PathBuf, File)>,
    /// Lines of a sandbox without a file.
    memory: Vec<u8>,
    next_seq: u64,
}

/// Why the journal could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file cannot be read or written.
    #[error("journal {path} cannot be used")]
    Io {
        /// The configured file.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// A complete line is not ours. An incomplete last line is cut off instead: no reply followed it.
    #[error("journal {path} line {number} cannot be read")]
    Line {
        /// The configured file.
        path: PathBuf,
        /// Counted from 1.
        number: usize,
        /// Cause.
        source: serde_json::Error,
    },
}

impl Journal {
    /// A journal that ends with the process.
    pub(crate) fn in_memory() -> Self {
        Self { file: None, memory: Vec::new(), next_seq: 1 }
    }

    /// Opens or creates `path` and hands every earlier line to `each`, oldest first.
    pub(crate) fn open(path: &Path, mut each: impl FnMut(Line)) -> Result<Self, JournalError> {
        let io_error = |source| JournalError::Io { path: path.to_owned(), source };
        let file = OpenOptions::new().read(true).append(true).create(true).open(path).map_err(io_error)?;
        let mut reader = BufReader::new(&file);
        let (mut text, mut kept, mut number, mut next_seq) = (Vec::new(), 0_u64, 0_usize, 1_u64);
        loop {
            text.clear();
            let read = reader.read_until(b'\n', &mut text).map_err(io_error)?;
            if !text.ends_with(b"\n") {
                break;
            }
            number += 1;
            let line: Line = serde_json::from_slice(&text).map_err(|source| JournalError::Line {
                path: path.to_owned(),
                number,
                source,
            })?;
            next_seq = next_seq.max(line.seq + 1);
            kept += u64::try_from(read).unwrap_or(0);
            each(line);
        }
        file.set_len(kept).map_err(io_error)?;
        Ok(Self { file: Some((path.to_owned(), file)), memory: Vec::new(), next_seq })
    }

    /// The number of the next call.
    pub(crate) fn next_seq(&mut self) -> u64 {
        let seq = self.next_seq;
        self.next_seq += 1;
        seq
    }

    /// Appends a line. A journal that cannot be written is worth nothing: the caller must not reply.
    pub(crate) fn append(&mut self, line: &Line) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        match &mut self.file {
            Some((_, file)) => file.write_all(&text),
            None => {
                self.memory.extend_from_slice(&text);
                Ok(())
            }
        }
    }

    /// Where to read the lines: the file, or a copy of the lines in memory.
    pub(crate) fn source(&self) -> Result<PathBuf, Vec<u8>> {
        match &self.file {
            Some((path, _)) => Ok(path.clone()),
            None => Err(self.memory.clone()),
        }
    }
}
