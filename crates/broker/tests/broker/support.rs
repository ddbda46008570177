//! A broker on an emulator of its own.

use anyhow::{Context, Result};
use backline_broker::{Broker, BrokerConfig, Delivery, Outgoing, Subscription, SubscriptionSpec};
use backline_pubsub_emulator::{Config, Emulator};
use bytes::Bytes;
use std::collections::HashMap;
use std::time::Duration;

/// How long a test waits for what should happen at once.
pub(crate) const SOON: Duration = Duration::from_secs(20);

pub(crate) struct Setup {
    pub(crate) emulator: Emulator,
    pub(crate) broker: Broker,
}

impl Setup {
    /// An emulator with topic `events` and subscription `reader`.
    pub(crate) async fn new() -> Result<Self> {
        Self::on(Config::default()).await
    }

    /// As [`Setup::new`], on an emulator with other settings.
    pub(crate) async fn on(config: Config) -> Result<Self> {
        let setup = Self::bare(config).await?;
        setup.broker.ensure_topic("events").await?;
        setup.broker.ensure_subscription(&spec("reader")).await?;
        Ok(setup)
    }

    pub(crate) async fn empty() -> Result<Self> {
        Self::bare(Config::default()).await
    }

    async fn bare(config: Config) -> Result<Self> {
        let emulator = Emulator::start(config).await?;
        let broker = Broker::connect(BrokerConfig::new("project", Some(emulator.addr.to_string()))).await?;
        Ok(Self { emulator, broker })
    }
}

pub(crate) fn spec(subscription: &str) -> SubscriptionSpec {
    SubscriptionSpec { min_backoff: Duration::ZERO, ..SubscriptionSpec::new(subscription, "events") }
}

/// An entry with these attributes and bytes.
pub(crate) struct Entry {
    pub(crate) attributes: HashMap<String, String>,
    pub(crate) data: Bytes,
}

impl Outgoing for Entry {
    fn attributes(&self) -> HashMap<String, String> {
        self.attributes.clone()
    }

    fn data(&self) -> Bytes {
        self.data.clone()
    }
}

pub(crate) fn outgoing(data: impl Into<Bytes>) -> Entry {
    Entry { attributes: [("ce-id".to_owned(), "1".to_owned())].into(), data: data.into() }
}

pub(crate) fn numbered(range: std::ops::Range<u32>) -> Vec<Entry> {
    range.map(|n| outgoing(n.to_string())).collect()
}

pub(crate) async fn next(subscription: &mut Subscription) -> Result<Delivery> {
    tokio::time::timeout(SOON, subscription.recv()).await.context("no delivery")?.context("ended")
}

/// Takes and acknowledges `count` deliveries and returns their texts.
pub(crate) async fn drain(subscription: &mut Subscription, count: usize) -> Result<Vec<String>> {
    let mut texts = Vec::with_capacity(count);
    for _ in 0..count {
        let delivery = next(subscription).await?;
        texts.push(String::from_utf8_lossy(&delivery.data).into_owned());
        delivery.ack();
    }
    Ok(texts)
}
