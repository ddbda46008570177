//! What to start and how.

use super::Process;
use crate::keeper::{Ending, Keeper, Plan};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// A program to start, any number of times: a restarted process is another start of the same launch.
#[derive(Debug, Clone)]
pub struct Launch {
    program: PathBuf,
    args: Vec<OsString>,
    env: BTreeMap<OsString, OsString>,
    log: PathBuf,
}

impl Launch {
    /// `program` with both output streams appended to `log`.
    #[must_use]
    pub fn new(program: impl Into<PathBuf>, log: impl Into<PathBuf>) -> Launch {
        Launch { program: program.into(), args: Vec::new(), env: BTreeMap::new(), log: log.into() }
    }

    /// With one more argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<OsString>) -> Launch {
        self.args.push(arg.into());
        self
    }

    /// With an environment variable on top of this process's own.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Launch {
        self.env.insert(name.into(), value.into());
        self
    }

    /// With many environment variables.
    #[must_use]
    pub fn envs<N: Into<OsString>, V: Into<OsString>>(
        mut self,
        pairs: impl IntoIterator<Item = (N, V)>,
    ) -> Launch {
        self.env.extend(pairs.into_iter().map(|(name, value)| (name.into(), value.into())));
        self
    }

    /// Without one of the variables set here before.
    #[must_use]
    pub fn without_env(mut self, name: impl Into<OsString>) -> Launch {
        self.env.remove(&name.into());
        self
    }

    /// The log file.
    #[must_use]
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Starts the program now.
    ///
    /// # Errors
    /// The program or the log's folder is missing. A program that starts and then fails shows in
    /// [`Process::exited`].
    pub fn start(&self) -> io::Result<Process> {
        if !self.program.is_file() {
            let text =
                format!("{} is not built: run `cargo build --workspace --bins`", self.program.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, text));
        }
        let log_start = fs::metadata(&self.log).map_or(0, |data| data.len());
        let plan = Plan { program: &self.program, ending: Ending::Kill, log: &self.log, doomed: None };
        let keeper = Keeper::start(&plan, |command| {
            command.args(&self.args).envs(&self.env);
        })?;
        let name = self.program.file_name().map(|name| name.to_string_lossy().into_owned());
        Ok(Process::new(name.unwrap_or_default(), keeper, self.log.clone(), log_start))
    }
}
