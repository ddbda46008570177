//! The processes of the demo and their restarts.

use crate::dev::{START_LIMIT, Stack};
use crate::{db, migrate};
use anyhow::Context;
use backline_dev_cluster::paths;
use backline_dev_cluster::pg::{Cluster, Options, state_dir};
use backline_dev_cluster::process::{Launch, Process};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use tokio::task::block_in_place;

/// Database of the demo.
const DATABASE: &str = "demo";

/// One of several equal processes.
pub(super) struct Role {
    pub(super) label: &'static str,
    launch: Launch,
    pub(super) process: Process,
    /// SIGKILLs of ours.
    pub(super) kills: u64,
    /// Ends that nobody asked for.
    pub(super) own_ends: u64,
}

impl Role {
    fn start(label: &'static str, launch: Launch) -> io::Result<Role> {
        let process = launch.start()?;
        Ok(Role { label, launch, process, kills: 0, own_ends: 0 })
    }

    /// SIGKILL and a new start, as an orchestrator does it.
    pub(super) fn kill(&mut self) -> io::Result<()> {
        self.process.kill9()?;
        self.kills += 1;
        self.process = self.launch.start()?;
        Ok(())
    }

    /// Starts it again if it ended by itself.
    pub(super) fn keep_alive(&mut self) -> io::Result<()> {
        if self.process.exited()?.is_some() {
            self.own_ends += 1;
            self.process = self.launch.start()?;
        }
        Ok(())
    }
}

/// Everything that runs. Dropping it stops all of it, PostgreSQL last.
pub(super) struct Stage {
    pub(super) relays: [Role; 2],
    pub(super) workers: [Role; 2],
    pub(super) twilio: [Role; 2],
    pub(super) stack: Stack,
    _sandbox: Process,
    _emulator: Process,
    pub(super) cluster: Cluster,
    pub(super) postgres_kills: u64,
}

/// Deliveries that a killed or stopped worker holds come again after this many milliseconds; clients ask for a minute
/// and renew well before.
const ACK_DEADLINE_MS: &str = "5000";

/// Timers of hours and minutes are compressed to seconds; their order stays: 2.25 requests < lease, linger < patience.
const WORKER_TIMERS: [(&str, &str); 7] = [
    ("BACKLINE_LEASE", "4s"),
    ("BACKLINE_SWEEP", "500ms"),
    ("BACKLINE_POLL", "200ms"),
    ("BACKLINE_COMMIT_LAG", "2s"),
    ("BACKLINE_ACQUIRE_TIMEOUT", "2s"),
    ("BACKLINE_REOFFER_AFTER", "10s"),
    // What a killed worker takes with it comes again only after the acknowledgement deadline.
    ("BACKLINE_DELIVERIES", "100"),
];
const STRIPE_TIMERS: [(&str, &str); 7] = [
    ("STRIPE_REQUEST_TIMEOUT", "1500ms"),
    ("STRIPE_LINGER", "1s"),
    ("STRIPE_LOOKUP_LAG", "500ms"),
    ("STRIPE_BACKOFF", "200ms"),
    ("STRIPE_SETTLEMENT_POLL", "500ms"),
    ("STRIPE_RATE", "200"),
    ("STRIPE_CONCURRENCY", "64"),
];
const TWILIO_TIMERS: [(&str, &str); 6] = [
    ("TWILIO_REQUEST_TIMEOUT", "1500ms"),
    ("TWILIO_LINGER", "1s"),
    ("TWILIO_LOOKUP_LAG", "500ms"),
    ("TWILIO_BACKOFF", "200ms"),
    ("TWILIO_RATE", "200"),
    ("TWILIO_CONCURRENCY", "64"),
];
const RELAY_TIMERS: [(&str, &str); 6] = [
    ("BACKLINE_RELAY_LEASE", "4s"),
    ("BACKLINE_RELAY_PUBLISH_TIMEOUT", "2s"),
    ("BACKLINE_RELAY_POLL", "200ms"),
    ("BACKLINE_RELAY_COMMIT_LAG", "2s"),
    ("BACKLINE_RELAY_UNMARKED_EVERY", "2s"),
    ("BACKLINE_RELAY_REOFFER_EVERY", "2s"),
];

impl Stage {
    /// Starts everything; `bug` is the number of a seeded bug that workers are asked to have.
    pub(super) async fn start(
        seed: u64,
        faults: &Path,
        bug: Option<u8>,
        dir: &Path,
    ) -> anyhow::Result<Stage> {
        let options = Options::throwaway()?.durable().setting("max_connections", "200");
        let cluster = block_in_place(|| options.start()).context("PostgreSQL")?;
        cluster.create_database(DATABASE)?;
        let stack = Stack::new(dir.to_owned(), cluster.url(DATABASE))?;
        let pool = db::connect(Some(&stack.database_url)).await?;
        migrate::MIGRATIONS.run(&pool).await.context("migrations")?;
        pool.close().await;
        block_in_place(|| {
            let mut emulator = stack.emulator()?.arg("--ack-deadline-cap").arg(ACK_DEADLINE_MS).start()?;
            emulator.wait_listening(START_LIMIT)?;
            let sandbox = stack.sandbox()?.arg("--seed").arg(seed.to_string()).arg("--faults").arg(faults);
            let mut sandbox = sandbox.start()?;
            sandbox.wait_listening(START_LIMIT)?;
            let worker = |label, launch: Launch| {
                let launch = launch.envs(WORKER_TIMERS);
                let launch = match bug {
                    Some(bug) => launch.env("BACKLINE_SEEDED_BUG", bug.to_string()),
                    None => launch,
                };
                Role::start(label, launch)
            };
            let payments = |label| worker(label, stack.payments(label)?.envs(STRIPE_TIMERS));
            let mut workers = [payments("payments-1")?, payments("payments-2")?];
            let chat = |label| worker(label, stack.twilio(label)?.envs(TWILIO_TIMERS));
            let mut twilio = [chat("twilio-1")?, chat("twilio-2")?];
            // Payments workers make the topic and its subscription, so they are ready before anything is published.
            for worker in workers.iter_mut().chain(&mut twilio) {
                worker.process.wait_for_line("a line `ready`", START_LIMIT, |line| line == "ready")?;
            }
            let relay = |label| Role::start(label, stack.relay(label)?.envs(RELAY_TIMERS));
            let relays = [relay("relay-1")?, relay("relay-2")?];
            Ok(Stage {
                relays,
                workers,
                twilio,
                stack,
                _sandbox: sandbox,
                _emulator: emulator,
                cluster,
                postgres_kills: 0,
            })
        })
    }

    /// SIGKILL to the postmaster and all its children, and a new start with crash recovery.
    pub(super) fn kill_postgres(&mut self) -> io::Result<()> {
        self.cluster.kill9()?;
        self.postgres_kills += 1;
        self.cluster.start_again()
    }

    pub(super) fn keep_alive(&mut self) -> io::Result<()> {
        let roles = self.relays.iter_mut().chain(&mut self.workers).chain(&mut self.twilio);
        roles.into_iter().try_for_each(Role::keep_alive)
    }

    /// SIGKILLs per process.
    pub(super) fn kills(&self) -> BTreeMap<&'static str, u64> {
        let kills = self.roles().map(|role| (role.label, role.kills));
        kills.chain([("PostgreSQL", self.postgres_kills)]).collect()
    }

    pub(super) fn own_ends(&self) -> u64 {
        self.roles().map(|role| role.own_ends).sum()
    }

    fn roles(&self) -> impl Iterator<Item = &Role> {
        self.relays.iter().chain(&self.workers).chain(&self.twilio)
    }
}

/// A new directory for the files of one run.
pub(super) fn run_dir() -> anyhow::Result<std::path::PathBuf> {
    let dir = state_dir(&paths::workspace()?, &format!("demo-{}", std::process::id()))?;
    std::fs::create_dir_all(&dir).with_context(|| format!("{} cannot be made", dir.display()))?;
    Ok(dir)
}
