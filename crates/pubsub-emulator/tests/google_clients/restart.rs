//! State survives a restart with a data directory.

use crate::fixture::{Fixture, message, next, subscription, take, text, topic};
use anyhow::Result;
use backline_pubsub_emulator::Config;
use google_cloud_pubsub::model::DeadLetterPolicy;
use std::path::PathBuf;

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
