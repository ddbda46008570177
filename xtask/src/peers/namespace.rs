//! A network namespace: a server that can only listen on all addresses listens there on none of this machine's.

use super::tally::Stop;
use super::tools::installed;
use crate::step;
use std::path::{Path, PathBuf};
use std::process::Command;

const PREFIX: &str = "backline-peers-";

/// A namespace with nothing but a loopback device. Dropping it removes it.
pub(crate) struct Namespace {
    ip: PathBuf,
    name: String,
}

impl Namespace {
    /// Makes one, and removes those that a killed run has left.
    ///
    /// # Errors
    /// `ip` is missing, or this account may not make a namespace.
    pub(crate) fn new() -> Result<Namespace, Stop> {
        let ip = installed("ip")?;
        if let Ok(known) = Command::new(&ip).args(["netns", "list"]).output() {
            let known = String::from_utf8_lossy(&known.stdout).into_owned();
            for name in known.lines().filter_map(|line| line.split_whitespace().next()) {
                let gone = |pid: &str| !Path::new("/proc").join(pid).exists();
                if name.strip_prefix(PREFIX).is_some_and(gone) {
                    step::works(Command::new(&ip).args(["netns", "del", name]));
                }
            }
        }
        let name = format!("{PREFIX}{}", std::process::id());
        let made = Command::new(&ip).args(["netns", "add", &name]).output()?;
        if !made.status.success() {
            let why = String::from_utf8_lossy(&made.stderr).trim().to_owned();
            return Err(Stop::Missing(format!("ip netns add needs root ({why})")));
        }
        let namespace = Namespace { ip, name };
        let up = namespace.command(["ip", "link", "set", "lo", "up"]).output()?;
        if !up.status.success() {
            let why = String::from_utf8_lossy(&up.stderr).trim().to_owned();
            return Err(Stop::Missing(format!("no loopback in a network namespace ({why})")));
        }
        Ok(namespace)
    }

    /// The program `ip`, and the arguments that make it run another program inside.
    pub(crate) fn enter(&self) -> (&Path, [&str; 3]) {
        (&self.ip, ["netns", "exec", &self.name])
    }

    /// A command inside.
    pub(crate) fn command<const N: usize>(&self, words: [&str; N]) -> Command {
        let (ip, enter) = self.enter();
        let mut command = Command::new(ip);
        command.args(enter).args(words);
        command
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        step::works(Command::new(&self.ip).args(["netns", "del", &self.name]));
    }
}
