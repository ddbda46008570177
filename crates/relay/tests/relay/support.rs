//! A database and an emulator of its own for every test.

use anyhow::{Context, Result};
use backline_broker::{Broker, BrokerConfig, Delivery, FlowLimits, Subscription, SubscriptionSpec};
use backline_outbox::NewEvent;
use backline_pubsub_emulator::{Config, Emulator};
use backline_relay::{Relay, RelayConfig, RelayEnd};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// How long a test waits for what should happen at once.
pub(crate) const SOON: Duration = Duration::from_secs(20);
pub(crate) const TOPIC: &str = "domain-events";

pub(crate) struct Setup {
    pub(crate) pool: PgPool,
    pub(crate) emulator: Emulator,
    pub(crate) broker: Broker,
    pub(crate) organization: Uuid,
}

pub(crate) struct Running {
    pub(crate) stop: CancellationToken,
    task: JoinHandle<RelayEnd>,
}

impl Setup {
    /// `scratch` is the test's own database, through a pool that is too small for a relay.
    pub(crate) async fn new(scratch: &PgPool) -> Result<Self> {
        let pool = PgPoolOptions::new()
            .max_connections(20)
            .connect_with((*scratch.connect_options()).clone())
            .await?;
        let emulator = Emulator::start(Config::default()).await?;
        let broker = Broker::connect(BrokerConfig::new("project", Some(emulator.addr.to_string()))).await?;
        broker.ensure_topic(TOPIC).await?;
        broker.ensure_subscription(&SubscriptionSpec::new("reader", TOPIC)).await?;
        Ok(Self { pool, emulator, broker, organization: Uuid::new_v4() })
    }

    /// Settings with short times, so that a test sees several rounds of everything.
    pub(crate) fn config() -> RelayConfig {
        RelayConfig {
            poll: Duration::from_millis(100),
            lease: Duration::from_secs(4),
            publish_timeout: Duration::from_secs(2),
            commit_lag: Duration::from_secs(2),
            unmarked_every: Duration::from_secs(1),
            backoff_start: Duration::from_millis(100),
            backoff_max: Duration::from_millis(800),
            reoffer_every: Duration::from_millis(300),
            ..RelayConfig::default()
        }
    }

    pub(crate) fn start(&self, config: RelayConfig) -> Result<Running> {
        let stop = CancellationToken::new();
        let relay = Relay::new(self.pool.clone(), self.broker.clone(), config, stop.clone())?;
        Ok(Running { stop, task: tokio::spawn(relay.run()) })
    }

    pub(crate) fn read(&self) -> Subscription {
        self.broker.subscribe("reader", FlowLimits { messages: 1000, bytes: 50_000_000 })
    }

    /// An event of aggregate `id`.
    pub(crate) fn event(&self, id: &str, payload: &str) -> Result<NewEvent> {
        Ok(NewEvent {
            id: None,
            event_type: "ThingChanged".to_owned(),
            schema_version: 1,
            organization: Some(self.organization),
            project: Some(self.organization),
            aggregate_type: "thing".to_owned(),
            aggregate_id: id.to_owned(),
            aggregate_version: None,
            correlation_id: None,
            causation_id: None,
            traceparent: None,
            tracestate: None,
            topic: None,
            payload: backline_envelope::Payload::from_json(payload)?,
        })
    }

    pub(crate) async fn emit(&self, events: &[NewEvent]) -> Result<Vec<Uuid>> {
        Ok(backline_outbox::run_tx!(&self.pool, "test.emit", |tx| async {
            backline_outbox::append_all(tx, events).await
        })?)
    }

    /// `n` events of `n` aggregates.
    pub(crate) async fn emit_many(&self, n: usize) -> Result<Vec<Uuid>> {
        let events =
            (0..n).map(|n| self.event(&format!("a{n}"), "{\"n\": 1.10}")).collect::<Result<Vec<_>>>()?;
        self.emit(&events).await
    }

    pub(crate) async fn count(&self, sql: &'static str) -> Result<i64> {
        Ok(sqlx::query_scalar(sql).fetch_one(&self.pool).await?)
    }

    /// Waits until a count is what it should be.
    pub(crate) async fn settles(&self, sql: &'static str, wanted: i64) -> Result<()> {
        let limit = tokio::time::Instant::now() + SOON;
        loop {
            let count = self.count(sql).await?;
            if count == wanted {
                return Ok(());
            }
            anyhow::ensure!(tokio::time::Instant::now() < limit, "{sql}: {count}, wanted {wanted}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Running {
    pub(crate) async fn stop(self) -> Result<RelayEnd> {
        self.stop.cancel();
        Ok(tokio::time::timeout(SOON, self.task).await.context("relay does not stop")??)
    }

    /// As if the process had been killed.
    pub(crate) fn kill(self) {
        self.task.abort();
    }
}

pub(crate) async fn next(subscription: &mut Subscription) -> Result<Delivery> {
    tokio::time::timeout(SOON, subscription.recv()).await.context("no delivery")?.context("ended")
}

pub(crate) fn id_of(delivery: &Delivery) -> Result<Uuid> {
    Ok(delivery.attributes.get("ce-id").context("no ce-id")?.parse()?)
}

/// Takes `count` deliveries and returns their event ids and payloads.
pub(crate) async fn drain(
    subscription: &mut Subscription,
    count: usize,
) -> Result<Vec<(Uuid, bytes::Bytes)>> {
    let mut out = Vec::with_capacity(count);
    for _ in 0..count {
        let delivery = next(subscription).await?;
        out.push((id_of(&delivery)?, delivery.data.clone()));
        delivery.ack();
    }
    Ok(out)
}

pub(crate) const WAITING: &str = "select count(*) from backline.outbox where parked_at is null";
pub(crate) const PARKED: &str = "select count(*) from backline.outbox where parked_at is not null";
pub(crate) const PUBLISHED: &str = "select count(*) from backline.outbox_published";
