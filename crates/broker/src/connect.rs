//! Building the client.

use crate::error::ConnectError;
use crate::publish::Lanes;
use crate::settings;
use google_cloud_auth::credentials::anonymous;
use google_cloud_gax::exponential_backoff::ExponentialBackoff;
use google_cloud_gax::exponential_backoff::ExponentialBackoffBuilder;
use google_cloud_gax::retry_policy::{LimitedElapsedTime, NeverRetry, RetryPolicyExt};
use google_cloud_pubsub::client::{BasePublisher, Subscriber, SubscriptionAdmin, TopicAdmin};
use google_cloud_pubsub::retry_policy::RetryableErrors;
use std::sync::Arc;
use std::time::Duration;

/// Where the broker is and how long it may take.
#[derive(Clone, Debug)]
pub struct BrokerConfig {
    /// Google Cloud project id; any text with an emulator.
    pub project: String,
    /// `host:port` of an emulator, as in `PUBSUB_EMULATOR_HOST`: plain text and no credentials. `None` uses the real
    /// service with the environment's default credentials.
    pub emulator_host: Option<String>,
    /// Time limit of one publish request. Must be shorter than the lease of whoever calls: Google's own default of
    /// 600 s would outlive it.
    pub publish_timeout: Duration,
    /// Connections to share requests among; 1 suffices for development.
    pub channels: usize,
}

impl BrokerConfig {
    /// A configuration with the default time limit of 10 s and one connection.
    #[must_use]
    pub fn new(project: impl Into<String>, emulator_host: Option<String>) -> Self {
        Self { project: project.into(), emulator_host, publish_timeout: Duration::from_secs(10), channels: 1 }
    }
}

/// A connection to Pub/Sub; cheap to clone.
#[derive(Clone, Debug)]
pub struct Broker {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) config: BrokerConfig,
    pub(crate) publisher: BasePublisher,
    pub(crate) subscriber: Subscriber,
    pub(crate) topics: TopicAdmin,
    pub(crate) subscriptions: SubscriptionAdmin,
    pub(crate) lanes: Lanes,
}

impl Broker {
    /// Builds the clients. Connections are made lazily, so an unreachable broker is not an error here.
    ///
    /// # Errors
    /// Credentials that cannot be loaded, a project that cannot be one, or an endpoint that is not a host and port.
    pub async fn connect(config: BrokerConfig) -> Result<Self, ConnectError> {
        // Google's crates are built without a default; the error means that main has installed one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let failed = |source: Box<dyn std::error::Error + Send + Sync>| ConnectError {
            project: config.project.clone(),
            source,
        };
        settings::project_id(&config.project).map_err(|e| failed(e.into()))?;
        if let Some(host) = &config.emulator_host {
            settings::emulator_host(host).map_err(|e| failed(e.into()))?;
        }
        let mut publisher = BasePublisher::builder()
            .with_grpc_subchannel_count(config.channels)
            // One attempt per call: the relay's own backoff decides about the next, with the same bytes, and sees
            // every failure. The limit is also the deadline of that attempt.
            .with_retry_policy(NeverRetry.with_time_limit(config.publish_timeout));
        let mut subscriber = Subscriber::builder().with_grpc_subchannel_count(config.channels);
        let mut topics =
            TopicAdmin::builder().with_retry_policy(admin_limit()).with_backoff_policy(admin_backoff());
        let mut subscriptions = SubscriptionAdmin::builder()
            .with_retry_policy(admin_limit())
            .with_backoff_policy(admin_backoff());
        if let Some(host) = &config.emulator_host {
            let endpoint = format!("http://{host}");
            publisher =
                publisher.with_endpoint(&endpoint).with_credentials(anonymous::Builder::new().build());
            subscriber =
                subscriber.with_endpoint(&endpoint).with_credentials(anonymous::Builder::new().build());
            topics = topics.with_endpoint(&endpoint).with_credentials(anonymous::Builder::new().build());
            subscriptions =
                subscriptions.with_endpoint(&endpoint).with_credentials(anonymous::Builder::new().build());
        }
        Ok(Self {
            inner: Arc::new(Inner {
                publisher: publisher.build().await.map_err(|e| failed(e.into()))?,
                subscriber: subscriber.build().await.map_err(|e| failed(e.into()))?,
                topics: topics.build().await.map_err(|e| failed(e.into()))?,
                subscriptions: subscriptions.build().await.map_err(|e| failed(e.into()))?,
                lanes: Lanes::default(),
                config,
            }),
        })
    }

    /// Full resource name of a topic id.
    pub(crate) fn topic_name(&self, topic: &str) -> String {
        self.full_name("topics", topic)
    }

    /// Full resource name of a subscription id.
    pub(crate) fn subscription_name(&self, subscription: &str) -> String {
        self.full_name("subscriptions", subscription)
    }

    /// What lies in another project is called by its full name already; ids have no slash.
    fn full_name(&self, collection: &str, id: &str) -> String {
        if id.starts_with("projects/") {
            return id.to_owned();
        }
        format!("projects/{}/{collection}/{id}", self.inner.config.project)
    }
}

/// Google's default repeats for up to a minute; start-up, probes and people want an answer.
pub(crate) fn admin_limit() -> LimitedElapsedTime<RetryableErrors> {
    RetryableErrors.with_time_limit(Duration::from_secs(5))
}

pub(crate) fn admin_backoff() -> ExponentialBackoff {
    ExponentialBackoffBuilder::new()
        .with_initial_delay(Duration::from_millis(100))
        .with_maximum_delay(Duration::from_secs(1))
        .clamp()
}
