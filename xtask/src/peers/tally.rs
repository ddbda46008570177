//! Counting what the scripts say.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// Results so far.
#[derive(Default)]
pub(crate) struct Tally {
    check: &'static str,
    passed: usize,
    failed: usize,
    skipped: usize,
}

/// Why a check could not run to its end.
pub(crate) enum Stop {
    /// Something that it needs cannot be had here.
    Missing(String),
    /// It should have worked.
    Broken(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        Stop::Broken(error)
    }
}

impl Tally {
    /// The cases that follow are of `check`.
    pub(crate) fn begin(&mut self, check: &'static str) {
        self.check = check;
    }

    /// Counts a check that ended early.
    pub(crate) fn stopped(&mut self, stop: &Stop) {
        match stop {
            Stop::Missing(reason) => self.note(&format!("skipped {}: {reason}", self.check)),
            Stop::Broken(error) => self.note(&format!("FAILED {}: {error}", self.check)),
        };
    }

    /// Runs a script, shows and counts its cases. Its standard error goes to `log`.
    ///
    /// # Errors
    /// The script cannot be started.
    pub(crate) fn script(&mut self, command: &mut Command, log: &Path) -> io::Result<()> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(log)?);
        let mut child = command.spawn()?;
        let (mut cases, failed) = (0, self.failed);
        for line in child.stdout.take().into_iter().flat_map(|output| BufReader::new(output).lines()) {
            cases += usize::from(self.note(&line?));
        }
        let status = child.wait()?;
        // A script that dies between two cases has said nothing about it.
        if self.failed == failed && (!status.success() || cases == 0) {
            self.note(&format!("FAILED {}: {cases} cases, then {status}", self.check));
        }
        if self.failed > failed {
            println!("   see {}", log.display());
        }
        Ok(())
    }

    /// Shows a line; true when it is a result.
    fn note(&mut self, line: &str) -> bool {
        println!("   {line}");
        let counter = match line.split_once(' ') {
            Some(("ok", _)) => &mut self.passed,
            Some(("FAILED", _)) => &mut self.failed,
            Some(("skipped", _)) => &mut self.skipped,
            _ => return false,
        };
        *counter += 1;
        true
    }

    /// The closing line.
    ///
    /// # Errors
    /// A case failed.
    pub(crate) fn close(self) -> io::Result<()> {
        println!("{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped);
        if self.failed > 0 {
            return Err(io::Error::other("our own idea of a peer is not the peer's"));
        }
        Ok(())
    }
}
