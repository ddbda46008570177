//! An emulator and Google's clients connected to it.

use anyhow::{Context, Result, bail};
use backline_pubsub_emulator::{Config, Emulator};
use google_cloud_auth::credentials::Credentials;
use google_cloud_auth::credentials::anonymous::Builder as Anonymous;
use google_cloud_gax::retry_policy::NeverRetry;
use google_cloud_pubsub::client::{Publisher, Subscriber, SubscriptionAdmin, TopicAdmin};
use google_cloud_pubsub::model::{Message, Subscription};
use google_cloud_pubsub::subscriber::MessageStream;
use google_cloud_pubsub::subscriber::handler::Handler;
use std::time::Duration;

pub(crate) const PROJECT: &str = "projects/p1";
/// Bound of every wait; nothing here takes a tenth of it.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn topic(name: &str) -> String {
    format!("{PROJECT}/topics/{name}")
}

pub(crate) fn subscription(name: &str) -> String {
    format!("{PROJECT}/subscriptions/{name}")
}

fn anonymous() -> Credentials {
    Anonymous::new().build()
}

pub(crate) struct Fixture {
    pub(crate) emulator: Emulator,
    pub(crate) topics: TopicAdmin,
    pub(crate) subscriptions: SubscriptionAdmin,
    pub(crate) subscriber: Subscriber,
    pub(crate) http: reqwest::Client,
}

impl Fixture {
    pub(crate) async fn start() -> Result<Self> {
        Self::with(Config::default()).await
    }

    pub(crate) async fn with(config: Config) -> Result<Self> {
        // Someone else in this process may have been first.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let emulator = Emulator::start(config).await?;
        let endpoint = emulator.endpoint();
        let topics = TopicAdmin::builder()
            .with_endpoint(&endpoint)
            .with_credentials(anonymous())
            .with_retry_policy(NeverRetry)
            .build();
        let subscriptions = SubscriptionAdmin::builder()
            .with_endpoint(&endpoint)
            .with_credentials(anonymous())
            .with_retry_policy(NeverRetry)
            .build();
        let subscriber = Subscriber::builder().with_endpoint(&endpoint).with_credentials(anonymous()).build();
        let (topics, subscriptions, subscriber) = (topics.await?, subscriptions.await?, subscriber.await?);
        let http = reqwest::Client::builder().timeout(PATIENCE).build()?;
        Ok(Self { emulator, topics, subscriptions, subscriber, http })
    }

    /// Creates a topic and a subscription of the same name.
    pub(crate) async fn setup(
        &self,
        name: &str,
        change: impl FnOnce(Subscription) -> Subscription,
    ) -> Result<()> {
        self.topics.create_topic().set_name(topic(name)).send().await?;
        self.subscribe_to(name, name, change).await
    }

    pub(crate) async fn subscribe_to(
        &self,
        to: &str,
        name: &str,
        change: impl FnOnce(Subscription) -> Subscription,
    ) -> Result<()> {
        let wanted = Subscription::new()
            .set_name(subscription(name))
            .set_topic(topic(to))
            .set_ack_deadline_seconds(10);
        self.subscriptions.create_subscription().with_request(change(wanted)).send().await?;
        Ok(())
    }

    pub(crate) async fn publisher(&self, name: &str) -> Result<Publisher> {
        Ok(Publisher::builder(topic(name))
            .with_endpoint(self.emulator.endpoint())
            .with_credentials(anonymous())
            .with_retry_policy(NeverRetry)
            .build()
            .await?)
    }

    pub(crate) async fn publish(&self, name: &str, message: Message) -> Result<String> {
        Ok(self.publisher(name).await?.publish(message).await?)
    }

    pub(crate) fn stream(&self, name: &str) -> MessageStream {
        self.subscriber.subscribe(subscription(name)).set_max_lease_extension(Duration::from_secs(10)).build()
    }

    /// Text of one of the emulator's own pages.
    pub(crate) async fn text_page(&self, path: &str) -> Result<String> {
        let url = format!("{}{path}", self.emulator.endpoint());
        Ok(self.http.get(url).send().await?.error_for_status()?.text().await?)
    }

    pub(crate) async fn page(&self, path: &str) -> Result<serde_json::Value> {
        Ok(serde_json::from_str(&self.text_page(path).await?)?)
    }

    /// Waits until everything in the subscription is acknowledged.
    pub(crate) async fn drained(&self, name: &str) -> Result<()> {
        let settled = async {
            loop {
                let stats = self.page("/stats").await?;
                if stats["subscriptions"][subscription(name)]["unacked"] == 0 {
                    return Ok(());
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, settled).await.context("messages left unacknowledged")?
    }
}

pub(crate) fn text(message: &Message) -> String {
    String::from_utf8_lossy(&message.data).into_owned()
}

pub(crate) fn message(data: &str) -> Message {
    Message::new().set_data(data.to_owned())
}

/// The next message, which must come.
pub(crate) async fn next(stream: &mut MessageStream) -> Result<(Message, Handler)> {
    match tokio::time::timeout(PATIENCE, stream.next()).await {
        Err(_) => bail!("no message in {PATIENCE:?}"),
        Ok(None) => bail!("stream ended"),
        Ok(Some(received)) => Ok(received?),
    }
}

/// The next messages, acknowledged.
pub(crate) async fn take(stream: &mut MessageStream, count: usize) -> Result<Vec<String>> {
    let mut got = Vec::new();
    while got.len() < count {
        let (message, handler) = next(stream).await?;
        handler.ack();
        got.push(text(&message));
    }
    Ok(got)
}
