//! State survives a restart with a data directory.

use crate::fixture::{Fixture, message, next, subscription, take, text, topic};
use anyhow::{Context, Result};
use backline_pubsub_emulator::Config;
use google_cloud_pubsub::model::DeadLetterPolicy;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("pubsub-{name}-{}", std::process::id())))
    }

    fn config(&self) -> Config {
        Config { data_dir: Some(self.0.clone()), ..Config::default() }
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[tokio::test]
async fn backlog_attempts_and_settings_survive() -> Result<()> {
    let dir = Dir::new("restart");
    let fixture = Fixture::with(dir.config()).await?;
    fixture.setup("dead", |s| s).await?;
    let policy = DeadLetterPolicy::new().set_dead_letter_topic(topic("dead"));
    fixture
        .setup("keep", |s| {
            s.set_enable_message_ordering(true).set_dead_letter_policy(policy).set_retain_acked_messages(true)
        })
        .await?;
    let publisher = fixture.publisher("keep").await?;
    for n in ["1", "2", "3"] {
        publisher.publish(message(n).set_ordering_key("k")).await?;
    }
    let mut stream = fixture.stream("keep");
    let (first, one) = next(&mut stream).await?;
    one.ack();
    let (_, two) = next(&mut stream).await?;
    two.nack();
    // Redelivery of 2 shows that both were applied, in the order of the client's flushes.
    let (again, _held) = loop {
        let (message, handler) = next(&mut stream).await?;
        if text(&message) == "2" && handler.delivery_attempt() == Some(2) {
            break (message, handler);
        }
    };
    drop(stream);
    fixture.emulator.shutdown().await?;

    for _ in 0..2 {
        // The second round reads the compacted journal of the first.
        let fixture = Fixture::with(dir.config()).await?;
        let stats = fixture.page("/stats").await?;
        assert_eq!(stats["subscriptions"][subscription("keep")]["unacked"], 2);
        fixture.emulator.shutdown().await?;
    }
    let fixture = Fixture::with(dir.config()).await?;
    let mut stream = fixture.stream("keep");
    let (message, handler) = next(&mut stream).await?;
    assert_eq!((text(&message).as_str(), &message.message_id), ("2", &again.message_id));
    assert!(handler.delivery_attempt() >= Some(2));
    handler.ack();
    assert_eq!(take(&mut stream, 1).await?, ["3"]);
    fixture.drained("keep").await?;
    let id = fixture.publish("keep", crate::fixture::message("4").set_ordering_key("k")).await?;
    assert_ne!(id, first.message_id);
    Ok(())
}

/// The binary, killed when dropped.
struct Process {
    child: Child,
    endpoint: String,
}

impl Process {
    fn start(dir: &Dir) -> Result<Self> {
        let mut child = Command::new(env!("CARGO_BIN_EXE_backline-pubsub-emulator"))
            .args(["--port", "0", "--data-dir"])
            .arg(&dir.0)
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("no output")?).read_line(&mut line)?;
        let addr = line.trim().strip_prefix("listening on ").context("unexpected first line")?;
        Ok(Self { endpoint: format!("http://{addr}"), child })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn what_was_confirmed_survives_a_kill() -> Result<()> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let dir = Dir::new("kill");
    let http = reqwest::Client::builder().timeout(std::time::Duration::from_secs(20)).build()?;
    let call = async |process: &Process, method: reqwest::Method, path: &str, body: &str| {
        let url = format!("{}/v1/projects/p1/{path}", process.endpoint);
        let answer = http.request(method, url).body(body.to_owned()).send().await?;
        anyhow::Ok(answer.error_for_status()?.text().await?)
    };
    let (put, post) = (reqwest::Method::PUT, reqwest::Method::POST);
    let process = Process::start(&dir)?;
    call(&process, put.clone(), "topics/kill", "").await?;
    call(&process, put, "subscriptions/kill", r#"{"topic":"projects/p1/topics/kill"}"#).await?;
    let messages = r#"{"messages":[{"data":"MQ=="},{"data":"Mg=="}]}"#;
    call(&process, post.clone(), "topics/kill:publish", messages).await?;
    let pulled = call(&process, post.clone(), "subscriptions/kill:pull", r#"{"maxMessages":1}"#).await?;
    let pulled: serde_json::Value = serde_json::from_str(&pulled)?;
    let acked = serde_json::json!({"ackIds": [pulled["receivedMessages"][0]["ackId"]]}).to_string();
    call(&process, post.clone(), "subscriptions/kill:acknowledge", &acked).await?;
    drop(process);

    let process = Process::start(&dir)?;
    let pulled = call(&process, post, "subscriptions/kill:pull", r#"{"maxMessages":9}"#).await?;
    let pulled: serde_json::Value = serde_json::from_str(&pulled)?;
    let received = pulled["receivedMessages"].as_array().context("nothing came")?;
    assert_eq!(received.len(), 1);
    assert_eq!(received[0]["message"]["data"], "Mg==");
    Ok(())
}
