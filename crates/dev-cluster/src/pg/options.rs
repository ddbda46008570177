//! What kind of cluster to start.

use super::{Cluster, throwaway_dir};
use std::io;
use std::path::PathBuf;

/// How a cluster is kept and tuned; [`Options::start`] starts it.
#[derive(Debug, Clone)]
pub struct Options {
    pub(super) dir: PathBuf,
    pub(super) removed_at_end: bool,
    pub(super) durable: bool,
    pub(super) port: Option<u16>,
    pub(super) settings: Vec<(String, String)>,
}

impl Options {
    /// A cluster in the temporary directory, removed when it or this process ends, with `fsync` off. It survives
    /// kills of its processes (commits are still acknowledged in order), not a loss of power.
    ///
    /// # Errors
    /// No usable temporary directory.
    pub fn throwaway() -> io::Result<Options> {
        let dir = throwaway_dir()?;
        Ok(Options { dir, removed_at_end: true, durable: false, port: None, settings: Vec::new() })
    }

    /// A cluster that stays in `dir` and is found again there by the next start, with PostgreSQL's own durability.
    /// See [`state_dir`](super::state_dir) for a directory that is usable as root too.
    #[must_use]
    pub fn kept_in(dir: impl Into<PathBuf>) -> Options {
        Options { dir: dir.into(), removed_at_end: false, durable: true, port: None, settings: Vec::new() }
    }

    /// With PostgreSQL's default durability: what measurements must use.
    #[must_use]
    pub fn durable(mut self) -> Options {
        self.durable = true;
        self
    }

    /// Removed when it or this process ends, although it has a place of its own.
    #[must_use]
    pub fn removed_at_end(mut self) -> Options {
        self.removed_at_end = true;
        self
    }

    /// On this port instead of a free one; an address in use is then an error.
    #[must_use]
    pub fn port(mut self, port: u16) -> Options {
        self.port = Some(port);
        self
    }

    /// With one more server setting, such as `("max_connections", "500")`.
    #[must_use]
    pub fn setting(mut self, name: &str, value: &str) -> Options {
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Starts the cluster, making it first if the directory has none.
    ///
    /// # Errors
    /// PostgreSQL is not found, the directory is unusable, or the server does not start; the error then carries the
    /// end of its log.
    pub fn start(self) -> io::Result<Cluster> {
        Cluster::start(self)
    }
}
