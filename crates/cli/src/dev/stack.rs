//! The programs of one private installation and how each is started.

use backline_dev_cluster::paths;
use backline_dev_cluster::process::{Launch, free_port};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A debug build on a busy machine starts within a few seconds.
pub(crate) const START_LIMIT: Duration = Duration::from_secs(30);

/// Where the parts find each other, and where their files are.
#[derive(Debug, Clone)]
pub(crate) struct Stack {
    pub(crate) dir: PathBuf,
    pub(crate) database_url: String,
    pub(crate) emulator: SocketAddr,
    pub(crate) sandbox: SocketAddr,
}

impl Stack {
    /// Ports are chosen now, so that a program which is started again is found where it was.
    pub(crate) fn new(dir: PathBuf, database_url: String) -> io::Result<Stack> {
        std::fs::create_dir_all(&dir)?;
        let address = || Ok::<_, io::Error>(SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?)));
        Ok(Stack { dir, database_url, emulator: address()?, sandbox: address()? })
    }

    /// The embedded Pub/Sub; what it has accepted survives it.
    pub(crate) fn emulator(&self) -> io::Result<Launch> {
        Ok(self
            .launch("backline-pubsub-emulator", "emulator")?
            .arg("--listen")
            .arg(self.emulator.to_string())
            .arg("--data-dir")
            .arg(self.dir.join("pubsub")))
    }

    /// The provider stand-in; what it has applied survives it.
    pub(crate) fn sandbox(&self) -> io::Result<Launch> {
        Ok(self
            .launch("backline-sandbox", "sandbox")?
            .arg("--listen")
            .arg(self.sandbox.to_string())
            .arg("--journal")
            .arg(self.dir.join("sandbox.ndjson")))
    }

    /// Outbox to Pub/Sub.
    pub(crate) fn relay(&self, label: &str) -> io::Result<Launch> {
        Ok(self
            .launch("backline-relay", label)?
            .env("BACKLINE_RELAY_OWNER", label)
            .env("BACKLINE_RELAY_HEALTH", "127.0.0.1:0")
            .envs(self.places()))
    }

    /// The payments worker, paying at the sandbox.
    pub(crate) fn payments(&self, label: &str) -> io::Result<Launch> {
        Ok(self
            .launch("backline-payments", label)?
            .env("BACKLINE_HEALTH_LISTEN", "127.0.0.1:0")
            .env("STRIPE_API_KEY", "sk_test_sandbox")
            .env("STRIPE_BASE_URL", format!("http://{}/", self.sandbox))
            .envs(self.places()))
    }

    /// The Twilio worker, keeping conversations at the sandbox.
    pub(crate) fn twilio(&self, label: &str) -> io::Result<Launch> {
        Ok(self
            .launch("backline-twilio", label)?
            .env("BACKLINE_HEALTH_LISTEN", "127.0.0.1:0")
            // The account of the sandbox, which takes every key of the right shape.
            .env("TWILIO_ACCOUNT_SID", "ACba5e000000000000000000000000ba5e")
            .env("TWILIO_API_KEY", "SK000000000000000000000000000000de")
            .env("TWILIO_API_SECRET", "sandbox")
            .env("TWILIO_BASE_URL", format!("http://{}/", self.sandbox))
            .envs(self.places()))
    }

    fn launch(&self, program: &str, label: &str) -> io::Result<Launch> {
        Ok(Launch::new(paths::binary(program)?, log(&self.dir, label)))
    }

    fn places(&self) -> [(&'static str, String); 3] {
        [
            ("DATABASE_URL", self.database_url.clone()),
            ("PUBSUB_EMULATOR_HOST", self.emulator.to_string()),
            ("PUBSUB_PROJECT_ID", "backline".to_owned()),
        ]
    }
}

/// Log file of a program.
pub(crate) fn log(dir: &Path, label: &str) -> PathBuf {
    dir.join(format!("{label}.log"))
}
