//! The measured worker as a process, and what the kernel says about it.

use super::bed::Bed;
use super::worker::{Handler, OPERATIONS};
use anyhow::Context;
use backline_dev_cluster::process::{Launch, Process};
use clap::ValueEnum;
use std::path::PathBuf;
use std::time::Duration;

/// Start and orderly end of a worker.
const START_LIMIT: Duration = Duration::from_secs(30);

/// Where such processes write; it stays when a measurement fails.
pub(super) fn log(what: &str) -> PathBuf {
    std::env::temp_dir().join(format!("backline-bench-{what}-{}.log", std::process::id()))
}

/// How a worker is started.
pub(super) struct Start<'a> {
    pub(super) handler: Handler,
    pub(super) operations: usize,
    pub(super) emulator: Option<&'a str>,
    /// The provider stand-in's host:port.
    pub(super) provider: Option<&'a str>,
}

impl Start<'_> {
    /// With the product's default capacity.
    pub(super) fn new(handler: Handler) -> Self {
        Self { handler, operations: OPERATIONS, emulator: None, provider: None }
    }
}

/// A worker process; killed when dropped.
pub(super) struct Worker(Process);

impl Worker {
    /// Starts one and waits until it is ready.
    pub(super) fn start(bed: &Bed, start: &Start<'_>) -> anyhow::Result<Self> {
        let handler =
            start.handler.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        let mut launch = Launch::new(std::env::current_exe()?, log("worker"))
            .env("DATABASE_URL", &bed.url)
            .arg("bench-worker")
            .arg(format!("--handler={handler}"))
            .arg(format!("--operations={}", start.operations));
        if let Some(emulator) = start.emulator {
            launch = launch.arg(format!("--emulator={emulator}"));
        }
        if let Some(provider) = start.provider {
            launch = launch.arg(format!("--provider={provider}"));
        }
        let mut process = launch.start()?;
        process.wait_for_line("a line `ready`", START_LIMIT, |line| line == "ready")?;
        Ok(Self(process))
    }

    /// Ends it in order.
    pub(super) fn stop(mut self) -> anyhow::Result<()> {
        self.0.terminate()?;
        self.0.wait_exit(START_LIMIT)?;
        // Many runs, one file: what a finished worker said is of no use to anybody.
        let _ = std::fs::remove_file(log("worker"));
        Ok(())
    }

    /// Ends it at once.
    pub(super) fn kill(&mut self) -> anyhow::Result<()> {
        self.0.kill9()?;
        let _ = std::fs::remove_file(log("worker"));
        Ok(())
    }

    /// Resident memory and its peak, in MiB.
    pub(super) fn memory(&self) -> anyhow::Result<(f64, f64)> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.pid()))?;
        let field = |name: &str| -> anyhow::Result<f64> {
            let line = status.lines().find(|line| line.starts_with(name)).context("no memory in /proc")?;
            let kib: f64 = line.split_whitespace().nth(1).context("no number in /proc")?.parse()?;
            Ok(kib / 1024.0)
        };
        Ok((field("VmRSS:")?, field("VmHWM:")?))
    }

    /// CPU seconds used so far, user and system.
    pub(super) fn cpu(&self) -> anyhow::Result<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.pid()))?;
        // The name in parentheses may hold spaces; utime and stime are fields 14 and 15 of the line.
        let rest = stat.rsplit(')').next().context("no fields in /proc")?;
        let ticks = |at: usize| -> anyhow::Result<f64> {
            Ok(rest.split_whitespace().nth(at).context("no time in /proc")?.parse()?)
        };
        // Linux counts these in hundredths of a second on every architecture we build for.
        Ok((ticks(11)? + ticks(12)?) / 100.0)
    }
}
