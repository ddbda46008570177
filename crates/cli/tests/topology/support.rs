//! A Pub/Sub of its own for each test, and the command run against it.

use anyhow::{Context, Result};
use backline_broker::{Broker, BrokerConfig, SubscriptionSpec, Topology};
use backline_pubsub_emulator::{Config, Emulator};
use serde_json::Value;
use sqlx::PgPool;
use std::path::PathBuf;
use tokio::process::Command;

pub(crate) struct Setup {
    emulator: Emulator,
    pub(crate) broker: Broker,
    database: Option<String>,
}

/// What the command answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: Option<i32>,
    pub(crate) json: Value,
    pub(crate) stderr: String,
}

impl Setup {
    pub(crate) async fn new() -> Result<Self> {
        let emulator = Emulator::start(Config::default()).await?;
        let broker = Broker::connect(BrokerConfig::new("project", Some(emulator.addr.to_string()))).await?;
        Ok(Self { emulator, broker, database: None })
    }

    /// With a database of its own, too.
    pub(crate) async fn with_database(pool: &PgPool) -> Result<Self> {
        let options = pool.connect_options();
        let name = options.get_database().context("the test has a database")?;
        let server = std::env::var("DATABASE_URL").context("DATABASE_URL is not set")?;
        let (server, _) = server.rsplit_once('/').context("DATABASE_URL names no database")?;
        Ok(Self { database: Some(format!("{server}/{name}")), ..Self::new().await? })
    }

    /// Runs `backline --json` against this Pub/Sub.
    pub(crate) async fn backline(&self, args: &[&str]) -> Result<Answer> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_backline"));
        command.arg("--json").args(args);
        command
            .env("PUBSUB_EMULATOR_HOST", self.emulator.addr.to_string())
            .env("PUBSUB_PROJECT_ID", "project");
        match &self.database {
            Some(url) => command.env("DATABASE_URL", url),
            None => command.env_remove("DATABASE_URL"),
        };
        answer(command).await
    }
}

pub(crate) async fn answer(mut command: Command) -> Result<Answer> {
    let output = command.output().await?;
    let json = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let stderr = String::from_utf8(output.stderr)?;
    Ok(Answer { code: output.status.code(), json, stderr })
}

/// What a worker with one consumer declares.
pub(crate) fn declared() -> Topology {
    Topology {
        declared_by: "letters".to_owned(),
        subscriptions: vec![SubscriptionSpec::of_consumer("events", "letters")],
        ..Topology::default()
    }
}

/// A new file with this text.
pub(crate) fn file(name: &str, text: &str) -> Result<PathBuf> {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(uuid::Uuid::new_v4().to_string());
    std::fs::create_dir_all(&dir)?;
    let path = dir.join(name);
    std::fs::write(&path, text)?;
    Ok(path)
}

/// The declaration as a worker prints it.
pub(crate) fn declaration(topology: &Topology) -> Result<String> {
    Ok(file("declaration.json", &serde_json::to_string(topology)?)?.display().to_string())
}

/// The findings under one name.
pub(crate) fn checks(answer: &Answer, name: &str) -> Vec<Value> {
    let all = answer.json["checks"].as_array().cloned().unwrap_or_default();
    all.into_iter().filter(|check| check["name"] == name).collect()
}
