//! A running child process.

use crate::keeper::Keeper;
use crate::{poll, table};
use rustix::process::Signal;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

/// How much of a log an error quotes, in bytes: the last screen.
const QUOTED: usize = 4_000;

/// A child process. Dropping it kills it (SIGKILL) and waits until it is gone.
pub struct Process {
    name: String,
    keeper: Keeper,
    log: PathBuf,
    /// Where this run's lines begin: earlier runs share the file.
    log_start: u64,
    code: Option<i32>,
}

impl Process {
    pub(super) fn new(name: String, keeper: Keeper, log: PathBuf, log_start: u64) -> Process {
        Process { name, keeper, log, log_start, code: None }
    }

    /// The process id.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.keeper.pid
    }

    /// The log file, shared with other runs of the same launch.
    #[must_use]
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// What this run has written so far.
    #[must_use]
    pub fn log_text(&self) -> String {
        let bytes = fs::read(&self.log).unwrap_or_default();
        let start = usize::try_from(self.log_start).unwrap_or(0).min(bytes.len());
        String::from_utf8_lossy(bytes.get(start..).unwrap_or_default()).into_owned()
    }

    /// The exit code once the process has ended, as a shell reports it: 128 + n after signal n (137 is SIGKILL).
    ///
    /// # Errors
    /// The process table cannot be read.
    pub fn exited(&mut self) -> io::Result<Option<i32>> {
        if self.code.is_none() {
            self.code = self.keeper.ended()?;
        }
        Ok(self.code)
    }

    /// Waits for the end and returns the exit code.
    ///
    /// # Errors
    /// Still running after `limit`.
    pub fn wait_exit(&mut self, limit: Duration) -> io::Result<i32> {
        let what = format!("{} to end", self.name);
        poll::until(&what, limit, || self.exited())
    }

    /// Waits for the first line of this run that `matches` accepts and returns it.
    ///
    /// # Errors
    /// The process ended or stayed silent; the error quotes the end of its log.
    pub fn wait_for_line(
        &mut self,
        what: &str,
        limit: Duration,
        matches: impl Fn(&str) -> bool,
    ) -> io::Result<String> {
        let waited = poll::until(what, limit, || {
            // Asked before the log is read, so that the last words of a process that ends are not missed.
            let ended = self.exited()?;
            let text = self.log_text();
            match (text.lines().find(|line| matches(line)), ended) {
                (Some(line), _) => Ok(Some(line.to_owned())),
                (None, None) => Ok(None),
                (None, Some(code)) => Err(io::Error::other(format!("ended with code {code} before {what}"))),
            }
        });
        waited.map_err(|error| {
            let text = self.log_text();
            let tail =
                text.get(text.ceil_char_boundary(text.len().saturating_sub(QUOTED))..).unwrap_or_default();
            io::Error::new(error.kind(), format!("{}: {error}\n{tail}", self.name))
        })
    }

    /// Waits for a line `listening on ADDR` and returns the address.
    ///
    /// # Errors
    /// As [`Process::wait_for_line`].
    pub fn wait_listening(&mut self, limit: Duration) -> io::Result<SocketAddr> {
        let line = self.wait_for_line("a line `listening on ADDR`", limit, |line| address(line).is_some())?;
        address(&line).ok_or_else(|| io::Error::other("the address changed while it was read"))
    }

    /// SIGKILL, and waits until the process is gone.
    ///
    /// # Errors
    /// The process cannot be signaled.
    pub fn kill9(&mut self) -> io::Result<()> {
        table::send(self.pid(), Signal::KILL)?;
        self.wait_exit(Duration::from_secs(30)).map(drop)
    }

    /// SIGTERM: asks for an orderly end. Follow with [`Process::wait_exit`].
    ///
    /// # Errors
    /// The process cannot be signaled.
    pub fn terminate(&self) -> io::Result<()> {
        table::send(self.pid(), Signal::TERM)
    }

    /// SIGSTOP: the process freezes, as in a long pause of a virtual machine.
    ///
    /// # Errors
    /// The process cannot be signaled.
    pub fn pause(&self) -> io::Result<()> {
        table::send(self.pid(), Signal::STOP)
    }

    /// SIGCONT: a frozen process goes on and finds the time gone.
    ///
    /// # Errors
    /// The process cannot be signaled.
    pub fn resume(&self) -> io::Result<()> {
        table::send(self.pid(), Signal::CONT)
    }
}

/// Reads the address from "listening on 127.0.0.1:8085", also inside JSON and with a scheme before it.
fn address(line: &str) -> Option<SocketAddr> {
    let rest = line.split_once("listening on ")?.1;
    let rest = rest.split_once("://").map_or(rest, |(_, after)| after);
    let end = rest.find(|c: char| !c.is_ascii_hexdigit() && !"[]:.".contains(c)).unwrap_or(rest.len());
    rest.get(..end)?.trim_end_matches('.').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn addresses_are_read_from_plain_and_json_lines() {
        let wanted = "127.0.0.1:8085".parse().ok();
        for line in [
            "listening on 127.0.0.1:8085",
            "2026-01-01T00:00:00Z INFO relay: listening on 127.0.0.1:8085.",
            r#"{"fields":{"message":"listening on 127.0.0.1:8085"},"target":"x"}"#,
            "listening on http://127.0.0.1:8085/health",
        ] {
            assert_eq!(address(line), wanted, "{line}");
        }
        assert_eq!(address("listening on [::1]:9"), "[::1]:9".parse().ok());
        assert_eq!(address("listening for signals"), None);
    }
}
