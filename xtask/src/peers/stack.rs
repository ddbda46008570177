//! The product on a private cluster, with foreign proxies between its parts.

use super::tally::Stop;
use super::tools::Tools;
use crate::database::Database;
use backline_dev_cluster::paths;
use backline_dev_cluster::process::{Launch, Process, free_port};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Programs answer within a second or two; a busy machine multiplies that.
const START_LIMIT: Duration = Duration::from_secs(60);
/// Any id will do at the emulator.
const PROJECT: &str = "peers";

/// A program of ours with a free port, and its log under the check's name.
pub(crate) fn program(tools: &Tools, check: &str, name: &str) -> io::Result<Launch> {
    let log = tools.log(&format!("{check}.{name}.log"));
    let _ = std::fs::remove_file(&log);
    Ok(Launch::new(paths::binary(name)?, log))
}

/// Starts a program that says where it listens.
pub(crate) fn listening(launch: &Launch) -> io::Result<(Process, SocketAddr)> {
    let mut process = launch.start()?;
    let at = process.wait_listening(START_LIMIT)?;
    Ok((process, at))
}

/// Parts in the order in which they were started.
pub(crate) struct Stack<'a> {
    check: &'static str,
    tools: &'a Tools,
    // Ended before the database, which is what they use.
    running: Vec<Process>,
    database: Database,
    /// Where Pub/Sub is.
    pub(crate) emulator: SocketAddr,
    /// Where the provider is.
    pub(crate) sandbox: SocketAddr,
    health: Vec<SocketAddr>,
}

impl<'a> Stack<'a> {
    /// Starts PostgreSQL, the emulator with the topic of the events, and the sandbox.
    ///
    /// # Errors
    /// One of them does not start, or the Python that is to judge them cannot be had.
    pub(crate) fn start(check: &'static str, tools: &'a Tools) -> Result<Stack<'a>, Stop> {
        tools.python("python")?;
        let database = Database::start()?;
        // What a cut stream carried comes again when its lease is over: a minute by Google's client, here seconds.
        let emulator = program(tools, check, "backline-pubsub-emulator")?
            .arg("--port")
            .arg("0")
            .arg("--ack-deadline-cap")
            .arg("5000");
        let sandbox = program(tools, check, "backline-sandbox")?.env("SANDBOX_LISTEN", "127.0.0.1:0");
        let ((one, emulator), (two, sandbox)) = (listening(&emulator)?, listening(&sandbox)?);
        put(emulator, &format!("/v1/projects/{PROJECT}/topics/domain-events"))?;
        let running = vec![one, two];
        Ok(Stack { check, tools, running, database, emulator, sandbox, health: Vec::new() })
    }

    /// Starts a foreign program or a script that says where it listens.
    ///
    /// # Errors
    /// It does not start.
    pub(crate) fn proxy(&mut self, launch: &Launch) -> io::Result<SocketAddr> {
        let (process, at) = listening(launch)?;
        self.running.push(process);
        Ok(at)
    }

    /// A script of ours that serves instead of judging.
    ///
    /// # Errors
    /// As [`Tools::python`].
    pub(crate) fn server(&self, name: &str) -> Result<Launch, Stop> {
        let log = self.tools.log(&format!("{}.{name}.log", self.check));
        let _ = std::fs::remove_file(&log);
        let python = Launch::new(self.tools.python("python")?, log).env("PYTHONUNBUFFERED", "1");
        Ok(python.env("PYTHONDONTWRITEBYTECODE", "1").arg(self.tools.file(name)))
    }

    /// A fault proxy with the rules of a file; the answer is where it listens and where its audit log is.
    ///
    /// # Errors
    /// It does not start.
    pub(crate) fn microburst(
        &mut self,
        protocol: &str,
        upstream: SocketAddr,
        rules: &str,
    ) -> Result<(SocketAddr, SocketAddr), Stop> {
        let log = self.tools.log(&format!("{}.microburst.log", self.check));
        let _ = std::fs::remove_file(&log);
        let (port, control) = (free_port()?, free_port()?);
        let upstream = if protocol == "http" { format!("http://{upstream}") } else { upstream.to_string() };
        let launch = Launch::new(self.tools.python("microburst")?, log)
            .arg("--host")
            .arg("127.0.0.1")
            .arg("--protocol")
            .arg(protocol)
            .arg("--port")
            .arg(port.to_string())
            .arg("--control-port")
            .arg(control.to_string())
            .arg("--upstream")
            .arg(upstream)
            .arg("--config")
            .arg(self.tools.file(rules));
        let at = self.proxy(&launch)?;
        // Over HTTP its own pages share the port.
        let audit = if protocol == "http" { at } else { SocketAddr::from((Ipv4Addr::LOCALHOST, control)) };
        Ok((at, audit))
    }

    /// Starts the relay. Timers are compressed in proportion, so that every recovery takes seconds.
    ///
    /// # Errors
    /// It does not start.
    pub(crate) fn relay(&mut self, pubsub: SocketAddr) -> io::Result<()> {
        let health = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
        let launch = program(self.tools, self.check, "backline-relay")?.envs([
            ("DATABASE_URL", self.database.url()),
            ("PUBSUB_EMULATOR_HOST", pubsub.to_string()),
            ("PUBSUB_PROJECT_ID", PROJECT.to_owned()),
            ("BACKLINE_RELAY_HEALTH", health.to_string()),
            ("BACKLINE_RELAY_PUBLISH_TIMEOUT", "2s".to_owned()),
            ("BACKLINE_RELAY_LEASE", "4s".to_owned()),
            ("BACKLINE_RELAY_COMMIT_LAG", "2s".to_owned()),
            ("BACKLINE_RELAY_UNMARKED_EVERY", "1s".to_owned()),
            ("BACKLINE_RELAY_POLL", "100ms".to_owned()),
        ]);
        self.running.push(launch.start()?);
        self.health.push(health);
        Ok(())
    }

    /// Prism on a description: refuses requests and answers that are not of it, and passes the others on.
    ///
    /// # Errors
    /// It does not start.
    pub(crate) fn prism(
        &mut self,
        node: &Path,
        entry: &Path,
        description: &Path,
        upstream: SocketAddr,
    ) -> io::Result<SocketAddr> {
        let log = self.tools.log(&format!("{}.prism.log", self.check));
        let _ = std::fs::remove_file(&log);
        let launch = Launch::new(node, log)
            .arg(entry)
            .arg("proxy")
            .arg("--errors")
            .arg("--host")
            .arg("127.0.0.1")
            .arg("--port")
            .arg(free_port()?.to_string())
            .arg(description)
            .arg(format!("http://{upstream}"));
        self.proxy(&launch)
    }

    /// Starts the payments worker.
    ///
    /// # Errors
    /// It does not start.
    pub(crate) fn worker(&mut self, pubsub: SocketAddr, stripe: SocketAddr) -> io::Result<()> {
        let settings = [
            ("STRIPE_BASE_URL", format!("http://{stripe}")),
            ("STRIPE_API_KEY", "sk_test_peers".to_owned()),
            ("STRIPE_REQUEST_TIMEOUT", "1s".to_owned()),
            ("STRIPE_LINGER", "500ms".to_owned()),
            ("STRIPE_LOOKUP_LAG", "300ms".to_owned()),
            ("STRIPE_BACKOFF", "50ms".to_owned()),
            ("STRIPE_SETTLEMENT_POLL", "200ms".to_owned()),
        ];
        self.start_worker("backline-payments", pubsub, settings)
    }

    /// Starts the Twilio worker. It consumes no events, but every worker wants a broker.
    ///
    /// # Errors
    /// It does not start.
    pub(crate) fn twilio(&mut self, twilio: SocketAddr) -> io::Result<()> {
        let settings = [
            ("TWILIO_BASE_URL", format!("http://{twilio}")),
            // The sandbox's account, which takes every key of the right shape.
            ("TWILIO_ACCOUNT_SID", "ACba5e000000000000000000000000ba5e".to_owned()),
            ("TWILIO_API_KEY", "SK000000000000000000000000000000ee".to_owned()),
            ("TWILIO_API_SECRET", "peers".to_owned()),
            ("TWILIO_REQUEST_TIMEOUT", "1s".to_owned()),
            ("TWILIO_LINGER", "500ms".to_owned()),
            ("TWILIO_LOOKUP_LAG", "300ms".to_owned()),
            ("TWILIO_BACKOFF", "50ms".to_owned()),
            // One attempt of these may take a hundred calls.
            ("TWILIO_RATE", "1000".to_owned()),
        ];
        self.start_worker("backline-twilio", self.emulator, settings)
    }

    fn start_worker<const N: usize>(
        &mut self,
        name: &str,
        pubsub: SocketAddr,
        settings: [(&str, String); N],
    ) -> io::Result<()> {
        let health = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
        let launch = program(self.tools, self.check, name)?.envs(settings).envs([
            ("DATABASE_URL", self.database.url()),
            ("PUBSUB_EMULATOR_HOST", pubsub.to_string()),
            ("PUBSUB_PROJECT_ID", PROJECT.to_owned()),
            ("BACKLINE_HEALTH_LISTEN", health.to_string()),
            ("BACKLINE_OPERATIONS", "40".to_owned()),
            ("BACKLINE_LEASE", "3s".to_owned()),
            ("BACKLINE_SWEEP", "200ms".to_owned()),
            ("BACKLINE_POLL", "100ms".to_owned()),
            ("BACKLINE_COMMIT_LAG", "2s".to_owned()),
            ("BACKLINE_ACQUIRE_TIMEOUT", "2s".to_owned()),
            ("BACKLINE_GRACE", "5s".to_owned()),
        ]);
        self.running.push(launch.start()?);
        self.health.push(health);
        Ok(())
    }

    /// A script that drives this stack: it is told where everything is.
    ///
    /// # Errors
    /// As [`Tools::python`].
    pub(crate) fn script(&self, name: &str) -> Result<Command, Stop> {
        let mut command = self.tools.script(name)?;
        let health: Vec<String> = self.health.iter().map(|at| format!("http://{at}/readyz")).collect();
        command
            .env("PEERS_DATABASE", self.database.url())
            .env("PEERS_EMULATOR", format!("http://{}", self.emulator))
            .env("PEERS_SANDBOX", format!("http://{}", self.sandbox))
            .env("PEERS_READY", health.join(" "));
        Ok(command)
    }
}

/// A PUT with an empty object.
fn put(at: SocketAddr, path: &str) -> io::Result<()> {
    let mut stream = TcpStream::connect(at)?;
    stream.set_read_timeout(Some(START_LIMIT))?;
    let head =
        format!("PUT {path} HTTP/1.1\r\nhost: {at}\r\nconnection: close\r\ncontent-type: application/json");
    write!(stream, "{head}\r\ncontent-length: 2\r\n\r\n{{}}")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    if answer.starts_with("HTTP/1.1 200") {
        return Ok(());
    }
    Err(io::Error::other(format!("PUT {path}: {}", answer.lines().next().unwrap_or("no answer"))))
}
