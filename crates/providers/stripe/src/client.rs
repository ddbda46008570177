use std::fmt;
use std::time::Duration;

use backline_provider_http::{Provider, SetupError, Transport};
use http::HeaderValue;
use url::Url;

use crate::ApiKey;

const PROVIDER: Provider = Provider {
    name: "stripe",
    before: "stripe.request.before",
    after: "stripe.request.after",
    words: &["v1", "payment_intents", "payouts", "refunds", "reversals", "transfers"],
};

/// What a client needs; read and checked by `main`.
#[derive(Debug, Clone)]
pub struct Config {
    /// The platform's secret or restricted key.
    pub api_key: ApiKey,
    /// Where Stripe is: [`Config::LIVE_URL`], or a stand-in.
    pub base_url: Url,
    /// How long a TCP and TLS connection may take. Ending it is still a definite "nothing left".
    pub connect_timeout: Duration,
}

impl Config {
    /// Stripe itself.
    pub const LIVE_URL: &'static str = "https://api.stripe.com/";

    /// Connecting to Stripe takes a fraction of a second; ten say that the network is broken, not slow.
    pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
}

/// Stripe's API over our own transport; clones share one connection pool.
#[derive(Clone)]
pub struct Stripe {
    pub(crate) transport: Transport,
    pub(crate) authorization: HeaderValue,
}

impl Stripe {
    /// Builds the client; connects to nothing.
    ///
    /// # Errors
    /// A setting that cannot work, named.
    pub fn new(config: Config) -> Result<Self, SetupError> {
        let user_agent = concat!("backline-stripe/", env!("CARGO_PKG_VERSION"));
        let transport = Transport::new(&PROVIDER, user_agent, config.base_url, config.connect_timeout)?;
        Ok(Self { transport, authorization: config.api_key.header() })
    }
}

impl fmt::Debug for Stripe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stripe").field("transport", &self.transport).finish_non_exhaustive()
    }
}
