use std::fmt;
use std::time::Duration;

use http::HeaderValue;
use url::Url;

use crate::ApiKey;

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

/// Why a client could not be built.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// Empty, or with characters that no header carries.
    #[error("api_key: not a usable Stripe key")]
    ApiKey,
    /// Not `http` or `https`, or without a host.
    #[error("base_url: `{0}` is not an http or https URL")]
    BaseUrl(Url),
    /// `main` installs one TLS provider for the process before it builds clients.
    #[error("no TLS crypto provider is installed")]
    Tls,
    /// The HTTP client refused its settings.
    #[error("http client: {0}")]
    Http(#[from] reqwest::Error),
}

/// Stripe's API over our own transport; clones share one connection pool.
#[derive(Clone)]
pub struct Stripe {
    pub(crate) http: reqwest::Client,
    pub(crate) authorization: HeaderValue,
    pub(crate) base_url: Url,
}

impl Stripe {
    /// Builds the client; connects to nothing.
    ///
    /// # Errors
    /// A setting that cannot work, named.
    pub fn new(config: Config) -> Result<Self, SetupError> {
        let mut base_url = config.base_url;
        if !matches!(base_url.scheme(), "http" | "https") || base_url.host().is_none() {
            return Err(SetupError::BaseUrl(base_url));
        }
        if !base_url.path().ends_with('/') {
            base_url.set_path(&format!("{}/", base_url.path()));
        }
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            return Err(SetupError::Tls);
        }
        let http = reqwest::Client::builder()
            .user_agent(concat!("backline-stripe/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(config.connect_timeout)
            // Shorter than any balancer's own limit: a POST on a connection that is just being closed is an unknown.
            .pool_idle_timeout(Duration::from_secs(30))
            // A redirected POST would be a second request that nobody decided on, to a host nobody configured.
            .redirect(reqwest::redirect::Policy::none())
            // Retries belong to the runtime, which knows the lease and the key's window.
            .retry(reqwest::retry::never())
            .build()?;
        Ok(Self { http, authorization: config.api_key.header().ok_or(SetupError::ApiKey)?, base_url })
    }
}

impl fmt::Debug for Stripe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stripe").field("base_url", &self.base_url.as_str()).finish_non_exhaustive()
    }
}
