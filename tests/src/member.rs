//! One process of a stack: killed, paused and started again in place.

use crate::CrashPlan;
use anyhow::Context;
use backline_dev_cluster::process::{Launch, Process};
use std::net::SocketAddr;
use std::time::Duration;

/// A debug build on a busy two-core machine connects and declares itself well within this.
const START_LIMIT: Duration = Duration::from_secs(60);

/// A program of the workspace in its place in the stack; its settings and log file stay the same over restarts.
pub struct Member {
    launch: Launch,
    process: Option<Process>,
    address: Option<SocketAddr>,
}

impl Member {
    /// A member that is not running yet.
    #[must_use]
    pub fn new(launch: Launch) -> Member {
        Member { launch, process: None, address: None }
    }

    /// Starts the process and waits until it listens.
    ///
    /// # Errors
    /// It ends or stays silent; the error quotes its log.
    pub fn start(&mut self) -> anyhow::Result<()> {
        self.start_as(&self.launch.clone())
    }

    /// Starts the process with a crash point armed, for this run alone.
    ///
    /// # Errors
    /// As [`Member::start`]; a plan may also fire before the process listens.
    pub fn start_with(&mut self, plan: &CrashPlan) -> anyhow::Result<()> {
        self.start_as(&self.launch.clone().envs(plan.env()))
    }

    fn start_as(&mut self, launch: &Launch) -> anyhow::Result<()> {
        anyhow::ensure!(self.process.is_none(), "{} is running already", self.launch.log().display());
        let mut process = launch.start()?;
        self.address = Some(process.wait_listening(START_LIMIT)?);
        self.process = Some(process);
        Ok(())
    }

    /// The address on which the last started process listens.
    ///
    /// # Errors
    /// It was never started.
    pub fn address(&self) -> anyhow::Result<SocketAddr> {
        self.address.context("not started yet")
    }

    /// The running process.
    ///
    /// # Errors
    /// It is not running.
    pub fn process(&mut self) -> anyhow::Result<&mut Process> {
        self.process.as_mut().context("not running")
    }

    /// SIGKILL; the member may be started again.
    ///
    /// # Errors
    /// It is not running.
    pub fn kill9(&mut self) -> anyhow::Result<()> {
        let mut process = self.process.take().context("not running")?;
        Ok(process.kill9()?)
    }

    /// SIGTERM, and the exit code of the orderly end.
    ///
    /// # Errors
    /// It is not running, or still running after `limit` (it is killed then).
    pub fn stop(&mut self, limit: Duration) -> anyhow::Result<i32> {
        let mut process = self.process.take().context("not running")?;
        process.terminate()?;
        Ok(process.wait_exit(limit)?)
    }

    /// SIGSTOP: a pause of any length, as of a virtual machine; [`Member::resume`] ends it.
    ///
    /// # Errors
    /// It is not running.
    pub fn pause(&mut self) -> anyhow::Result<()> {
        Ok(self.process()?.pause()?)
    }

    /// SIGCONT.
    ///
    /// # Errors
    /// It is not running.
    pub fn resume(&mut self) -> anyhow::Result<()> {
        Ok(self.process()?.resume()?)
    }

    /// The exit code if the process has ended by itself (a fired crash point); the member may be started again then.
    ///
    /// # Errors
    /// It was not running.
    pub fn ended(&mut self) -> anyhow::Result<Option<i32>> {
        let code = self.process()?.exited()?;
        if code.is_some() {
            self.process = None;
        }
        Ok(code)
    }

    /// Everything that all runs have written.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn log(&self) -> anyhow::Result<String> {
        Ok(String::from_utf8_lossy(&std::fs::read(self.launch.log())?).into_owned())
    }
}
