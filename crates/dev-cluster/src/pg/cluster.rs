//! One running server, its crash, its restart and its end.

use super::identity::Identity;
use super::{Binaries, Options, Session, USER, place};
use crate::keeper::{Ending, Keeper, Plan};
use crate::process::free_port;
use crate::{poll, table};
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{fs, io};

/// Crash recovery of a test's data takes well under a second; a busy two-core machine multiplies that by ten.
const START_LIMIT: Duration = Duration::from_secs(60);
/// A fast shutdown writes one checkpoint.
const STOP_LIMIT: Duration = Duration::from_secs(60);
/// Between choosing a free port and binding it somebody else may take it; five times in a row nobody does.
const PORT_TRIES: u32 = 5;

/// A private cluster. Dropping it stops the server, and removes the files of a throwaway one.
pub struct Cluster {
    pub(super) binaries: Binaries,
    pub(super) identity: Identity,
    pub(super) options: Options,
    port: u16,
    server: Option<Keeper>,
}

impl Cluster {
    pub(super) fn start(options: Options) -> io::Result<Cluster> {
        let binaries = Binaries::find()?;
        let identity = Identity::choose()?;
        place::prepare(&options.dir, identity)?;
        let mut cluster = Cluster { binaries, identity, options, port: 0, server: None };
        if !cluster.data().join("PG_VERSION").exists() {
            cluster.initialize()?;
        }
        cluster.check_version()?;
        cluster.start_on_some_port()?;
        Ok(cluster)
    }

    pub(super) fn of_copy(original: &Cluster, options: Options) -> Cluster {
        Cluster {
            binaries: original.binaries.clone(),
            identity: original.identity,
            options,
            port: 0,
            server: None,
        }
    }

    /// Starts the server of an existing data directory: on the wanted port, or on the first free one that holds.
    pub(super) fn start_on_some_port(&mut self) -> io::Result<()> {
        let mut tries = 0;
        loop {
            tries += 1;
            self.port = self.options.port.map_or_else(free_port, Ok)?;
            match self.start_again() {
                Err(error)
                    if error.kind() == io::ErrorKind::AddrInUse
                        && self.options.port.is_none()
                        && tries < PORT_TRIES => {}
                result => return result,
            }
        }
    }

    fn initialize(&self) -> io::Result<()> {
        let mut initdb = Command::new(self.binaries.program("initdb")?);
        initdb
            .args(["-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "-D"])
            .arg(self.data());
        self.run(initdb)?;
        let main = self.data().join("postgresql.conf");
        let text = fs::read_to_string(&main)?;
        // Written after the fact, so that `set` has a file of its own; the last value of a setting wins.
        fs::write(&main, text + "\ninclude_if_exists = 'backline.conf'\n")
    }

    pub(super) fn run(&self, mut command: Command) -> io::Result<()> {
        self.identity.assume(&mut command);
        let output = command.output()?;
        if output.status.success() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(io::Error::other(format!("{} failed: {text}", command.get_program().display())))
    }

    fn check_version(&self) -> io::Result<()> {
        let found = fs::read_to_string(self.data().join("PG_VERSION"))?;
        if found.trim() == self.binaries.major().to_string() {
            return Ok(());
        }
        Err(io::Error::other(format!(
            "{} was made by PostgreSQL {} but {} is {}; set PG_BIN to the older one or remove the directory",
            self.options.dir.display(),
            found.trim(),
            self.binaries.dir().display(),
            self.binaries.major()
        )))
    }

    /// Starts the server again after [`Cluster::kill9`] or [`Cluster::stop`], on the same port.
    ///
    /// # Errors
    /// The server does not start: the error carries the end of its log, and is `AddrInUse` when the port is taken.
    pub fn start_again(&mut self) -> io::Result<()> {
        self.write_settings()?;
        let program = self.binaries.program("postgres")?;
        let log = self.log();
        let log_start = fs::metadata(&log).map_or(0, |data| data.len());
        let ending = if self.options.removed_at_end { Ending::Quit } else { Ending::Interrupt };
        let doomed = self.options.removed_at_end.then_some(self.options.dir.as_path());
        let plan = Plan { program: &program, ending, log: &log, doomed };
        let port = self.port.to_string();
        let mut server = Keeper::start(&plan, |command| {
            self.identity.assume(command);
            command.arg("-D").arg(self.data()).args(["-p", &port]);
        })?;
        let pid_file = self.data().join("postmaster.pid");
        let pid = server.pid.to_string();
        let started = poll::until("PostgreSQL to accept connections", START_LIMIT, || {
            let state = fs::read_to_string(&pid_file).unwrap_or_default();
            // Eighth line: "starting", "ready", or "standby" for a standby that answers queries. The first line
            // tells this server from a killed one that left its file behind.
            let ours = state.lines().next() == Some(&pid);
            if ours && matches!(state.lines().nth(7).map(str::trim), Some("ready" | "standby")) {
                return Ok(Some(()));
            }
            match server.ended()? {
                Some(_) => Err(self.startup_failure(log_start)),
                None => Ok(None),
            }
        });
        started.map(|()| self.server = Some(server))
    }

    fn startup_failure(&self, log_start: u64) -> io::Error {
        let log = fs::read(self.log()).unwrap_or_default();
        let start = usize::try_from(log_start).unwrap_or(0).min(log.len());
        let text = String::from_utf8_lossy(log.get(start..).unwrap_or_default()).trim().to_owned();
        let kind = if text.contains("Address already in use") {
            io::ErrorKind::AddrInUse
        } else {
            io::ErrorKind::Other
        };
        io::Error::new(kind, format!("PostgreSQL did not start: {text}"))
    }

    fn write_settings(&self) -> io::Result<()> {
        let mut text = String::from(
            "# Written at each start.\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = ''\n",
        );
        if !self.options.durable {
            // Both only guard against a loss of power; commits stay synchronous, so a killed server loses none.
            text.push_str("fsync = off\nfull_page_writes = off\n");
        }
        for (name, value) in &self.options.settings {
            text.push_str(&format!("{name} = '{}'\n", value.replace('\'', "''")));
        }
        fs::write(self.data().join("backline.conf"), text)
    }

    /// Changes a server setting now; one that needs a restart takes effect at the next [`Cluster::restart`].
    ///
    /// # Errors
    /// The settings file cannot be written.
    pub fn set(&mut self, name: &str, value: &str) -> io::Result<()> {
        self.options.settings.retain(|(known, _)| known != name);
        self.options.settings.push((name.to_owned(), value.to_owned()));
        self.write_settings()?;
        self.server.as_ref().map_or(Ok(()), |server| table::send(server.pid, Signal::HUP))
    }

    /// Kills the server and all its processes with SIGKILL, as a crashed machine or the kernel's memory guard does.
    ///
    /// # Errors
    /// The processes cannot be signaled or do not vanish.
    pub fn kill9(&mut self) -> io::Result<()> {
        let Some(mut server) = self.server.take() else { return Ok(()) };
        // A stopped postmaster cannot replace or outlive the children that are counted now.
        table::send(server.pid, Signal::STOP)?;
        let mut doomed = table::children(server.pid)?;
        doomed.push(server.pid);
        for pid in &doomed {
            table::send(*pid, Signal::KILL)?;
        }
        poll::until("the killed PostgreSQL to vanish", STOP_LIMIT, || {
            let rows = table::rows()?;
            let left = rows.iter().any(|row| !row.zombie && doomed.contains(&row.pid));
            Ok((!left && server.ended()?.is_some()).then_some(()))
        })
    }

    /// Stops the server in order (fast shutdown: open sessions are ended). Without effect when it is stopped.
    ///
    /// # Errors
    /// The server does not end.
    pub fn stop(&mut self) -> io::Result<()> {
        let Some(mut server) = self.server.take() else { return Ok(()) };
        table::send(server.pid, Signal::INT)?;
        poll::until("PostgreSQL to stop", STOP_LIMIT, || server.ended()).map(drop)
    }

    /// Stops and starts the server on the same port, as a planned maintenance does.
    ///
    /// # Errors
    /// As [`Cluster::stop`] and [`Cluster::start_again`].
    pub fn restart(&mut self) -> io::Result<()> {
        self.stop()?;
        self.start_again()
    }

    /// A connection URL of one database.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        format!("postgres://{USER}@127.0.0.1:{}/{database}", self.port)
    }

    /// Opens a session for a few statements.
    ///
    /// # Errors
    /// As [`Session::connect`].
    pub fn session(&self, database: &str) -> io::Result<Session> {
        Session::connect(self.port, database)
    }

    /// Creates an empty database.
    ///
    /// # Errors
    /// It exists, or the server is down.
    pub fn create_database(&self, name: &str) -> io::Result<()> {
        self.session("postgres")?.run(&format!("create database \"{}\"", name.replace('"', "\"\""))).map(drop)
    }

    /// The server's TCP port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The server programs in use.
    #[must_use]
    pub fn binaries(&self) -> &Binaries {
        &self.binaries
    }

    /// The server's log file.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.options.dir.join("log")
    }

    pub(super) fn data(&self) -> PathBuf {
        self.options.dir.join("data")
    }

    /// The cluster's directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.options.dir
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.server.take());
        if self.options.removed_at_end {
            // The keeper removed the files as the server's account; the rest is an empty directory of ours.
            let _ = fs::remove_dir_all(&self.options.dir);
        }
    }
}
