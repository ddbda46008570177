//! A product as an earlier version left it: its database, and what the providers remember of the same moment.
//!
//! `make-fixture` writes one from a real run (`CHANGELOG.md` names them); `version_skew` lets today's build take over.
//! Keys say what must become of their operations: see [`Fate`].

use anyhow::Context;
use backline_dev_cluster::paths;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

/// What the next version must do with an operation, as the beginning of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It has ended, and is not touched.
    Done,
    /// It is open, waits or is in doubt, and succeeds.
    Ends,
    /// Its producer wishes to cancel it, and nothing was applied.
    Cancelled,
    /// Its organization is paused: it is open until somebody resumes that.
    Paused,
    /// Nobody but a person, or a build that knows more, decides about it.
    Stays,
}

impl Fate {
    /// The key's beginning.
    #[must_use]
    pub fn prefix(self) -> &'static str {
        match self {
            Fate::Done => "done-",
            Fate::Ends => "ends-",
            Fate::Cancelled => "cancelled-",
            Fate::Paused => "paused-",
            Fate::Stays => "stays-",
        }
    }
}

/// The three files of a fixture.
#[derive(Debug, Clone)]
pub struct Fixture {
    /// Roles, schema and rows as SQL.
    pub sql: String,
    /// The sandbox's journal.
    pub journal: String,
    /// What the scripted provider was asked for, one JSON object a line.
    pub calls: String,
}

impl Fixture {
    /// Reads the fixture of a version, for example `v0.1.0`.
    ///
    /// # Errors
    /// A file is missing.
    pub fn read(version: &str) -> anyhow::Result<Fixture> {
        let [sql, journal, calls] = files(version)?
            .map(|path| fs::read_to_string(&path).with_context(|| format!("reading {}", path.display())));
        Ok(Fixture { sql: sql?, journal: journal?, calls: calls? })
    }

    /// Writes the fixture of a version.
    ///
    /// # Errors
    /// The folder is missing or not writable.
    pub fn write(&self, version: &str) -> anyhow::Result<()> {
        for (path, text) in files(version)?.into_iter().zip([&self.sql, &self.journal, &self.calls]) {
            fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
        }
        Ok(())
    }

    pub(crate) fn remembered(&self) -> anyhow::Result<Vec<Value>> {
        self.calls.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
    }
}

fn files(version: &str) -> anyhow::Result<[PathBuf; 3]> {
    let dir = paths::workspace()?.join("tests/fixtures");
    Ok(["sql", "provider.ndjson", "effects.ndjson"].map(|kind| dir.join(format!("{version}.{kind}"))))
}
