//! One process of a stack: killed, paused and started again in place.

use crate::{CrashPlan, http};
use anyhow::Context;
use backline_dev_cluster::process::{Launch, Process};
use serde_json::Value;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// A debug build on a busy two-core machine connects and declares itself well within this.
const START_LIMIT: Duration = Duration::from_secs(60);

/// Between two looks at a page that does not answer yet.
const STEP: Duration = Duration::from_millis(20);

/// How a member shows that it has started.
#[derive(Debug, Clone, Copy)]
pub enum Ready {
    /// It prints `listening on ADDR`.
    Says,
    /// `GET /readyz` at this address answers 200.
    Answers(SocketAddr),
}

/// A program of the workspace in its place in the stack; its settings and log file stay the same over restarts.
pub struct Member {
    launch: Launch,
    ready: Ready,
    process: Option<Process>,
    address: Option<SocketAddr>,
}

impl Member {
    /// A member that is not running yet.
    #[must_use]
    pub fn new(launch: Launch, ready: Ready) -> Member {
        Member { launch, ready, process: None, address: None }
    }

    /// Starts the process and waits until it is ready.
    ///
    /// # Errors
    /// It ends or stays silent; the error quotes its log.
    pub fn start(&mut self) -> anyhow::Result<()> {
        self.start_as(&self.launch.clone())
    }

    /// Starts the process with a crash point armed, for this run alone.
    ///
    /// # Errors
    /// As [`Member::start`]; a plan may also fire before the process is ready, see [`Member::launch_with`].
    pub fn start_with(&mut self, plan: &CrashPlan) -> anyhow::Result<()> {
        self.start_as(&self.launch.clone().envs(plan.env()))
    }

    /// Starts the process with a crash point armed and does not wait: the plan may fire at once.
    ///
    /// # Errors
    /// The program is missing or the member is running.
    pub fn launch_with(&mut self, plan: &CrashPlan) -> anyhow::Result<()> {
        self.launch_as(&self.launch.clone().envs(plan.env()))
    }

    /// Starts the process and does not wait: it may refuse to start, see [`Member::ended`].
    ///
    /// # Errors
    /// The program is missing or the member is running.
    pub fn launch(&mut self) -> anyhow::Result<()> {
        self.launch_as(&self.launch.clone())
    }

    /// Runs the program with other settings until it ends by itself, and returns exit code and words of this run.
    ///
    /// # Errors
    /// It is running, or does not end.
    pub fn refusal(&self, settings: &[(&str, &str)]) -> anyhow::Result<(i32, String)> {
        anyhow::ensure!(self.process.is_none(), "{} is running already", self.launch.log().display());
        let mut process = self.launch.clone().envs(settings.iter().copied()).start()?;
        let code = process.wait_exit(START_LIMIT)?;
        Ok((code, process.log_text()))
    }

    fn launch_as(&mut self, launch: &Launch) -> anyhow::Result<()> {
        anyhow::ensure!(self.process.is_none(), "{} is running already", self.launch.log().display());
        self.process = Some(launch.start()?);
        if let Ready::Answers(address) = self.ready {
            self.address = Some(address);
        }
        Ok(())
    }

    fn start_as(&mut self, launch: &Launch) -> anyhow::Result<()> {
        anyhow::ensure!(self.process.is_none(), "{} is running already", self.launch.log().display());
        let mut process = launch.start()?;
        let address = match self.ready {
            Ready::Says => process.wait_listening(START_LIMIT)?,
            Ready::Answers(address) => wait_answering(&mut process, address)?,
        };
        self.address = Some(address);
        self.process = Some(process);
        Ok(())
    }

    /// Where the process listens (a stand-in) or shows its health (relay and workers).
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

    /// The process id while it is running, also while it is paused.
    #[must_use]
    pub fn pid(&self) -> Option<i32> {
        self.process.as_ref().map(Process::pid)
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

    /// Everything that all runs have written; nothing before the first.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn log(&self) -> anyhow::Result<String> {
        match std::fs::read(self.launch.log()) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
            read => Ok(String::from_utf8_lossy(&read?).into_owned()),
        }
    }
}

fn wait_answering(process: &mut Process, address: SocketAddr) -> anyhow::Result<SocketAddr> {
    let started = Instant::now();
    loop {
        let last = match http::call(address, "GET", "/readyz", &Value::Null) {
            Ok((200, _)) => return Ok(address),
            Ok((status, text)) => format!("{status} {text}"),
            Err(error) => error.to_string(),
        };
        if let Some(code) = process.exited()? {
            anyhow::bail!("ended with code {code}: {}", process.log_text());
        }
        anyhow::ensure!(started.elapsed() < START_LIMIT, "not ready: {last}: {}", process.log_text());
        #[expect(clippy::disallowed_methods, reason = "another process has no event to wait for")]
        std::thread::sleep(STEP);
    }
}
