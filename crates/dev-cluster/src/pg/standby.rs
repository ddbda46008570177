//! A copy that follows a cluster, for failover drills.

use super::cluster::Cluster;
use super::{Options, USER, place, throwaway_dir};
use crate::poll;
use std::io;
use std::process::Command;
use std::time::Duration;

/// Streaming replication on one machine lags by milliseconds.
const CATCH_UP_LIMIT: Duration = Duration::from_secs(30);

impl Cluster {
    /// Starts a throwaway hot standby of this cluster by a base backup; it follows by streaming replication, which is
    /// asynchronous unless this cluster's `synchronous_standby_names` says otherwise.
    ///
    /// # Errors
    /// `pg_basebackup` is missing or fails, or the standby does not start.
    pub fn standby(&self) -> io::Result<Cluster> {
        let options =
            Options { dir: throwaway_dir()?, removed_at_end: true, port: None, ..self.options.clone() };
        // The copy's own commits would wait for a standby that it does not have.
        let options = Options {
            settings: options
                .settings
                .into_iter()
                .filter(|(name, _)| name != "synchronous_standby_names")
                .collect(),
            ..options
        };
        place::prepare(&options.dir, self.identity)?;
        let mut copy = Cluster::of_copy(self, options);
        let mut backup = Command::new(self.binaries.program("pg_basebackup")?);
        backup.args(["-R", "-X", "stream", "-c", "fast", "--no-sync", "-h", "127.0.0.1", "-U", USER]);
        backup.args(["-p", &self.port().to_string(), "-D"]).arg(copy.data());
        copy.run(backup)?;
        copy.start_on_some_port()?;
        Ok(copy)
    }

    /// Waits until this standby has replayed everything that `primary` has written so far.
    ///
    /// # Errors
    /// It does not catch up, or one of the two is down.
    pub fn wait_caught_up(&self, primary: &Cluster) -> io::Result<()> {
        let written = primary.session("postgres")?.value("select pg_current_wal_lsn()")?;
        let mut session = self.session("postgres")?;
        let sql = format!("select pg_last_wal_replay_lsn() >= '{written}'::pg_lsn");
        poll::until("the standby to catch up", CATCH_UP_LIMIT, || {
            Ok((session.value(&sql)? == "t").then_some(()))
        })
    }

    /// Makes this standby a primary on a new timeline. The old primary must be dead, or both accept writes.
    ///
    /// # Errors
    /// It is not a standby, or does not finish recovery within a minute.
    pub fn promote(&self) -> io::Result<()> {
        match self.session("postgres")?.value("select pg_promote(true, 60)")?.as_str() {
            "t" => Ok(()),
            _ => Err(io::Error::other("the standby was not promoted within 60s")),
        }
    }
}
