use std::fmt;
use std::time::Duration;

use backline_provider_http::{Provider, Transport};
use http::HeaderValue;
use url::Url;

use crate::Credentials;

const PROVIDER: Provider = Provider {
    name: "twilio",
    before: "twilio.request.before",
    after: "twilio.request.after",
    words: &["v1", "Conversations", "Participants"],
};

/// What a client needs; read and checked by `main`.
#[derive(Debug, Clone)]
pub struct Config {
    /// Account and API key.
    pub credentials: Credentials,
    /// Where Conversations are: [`Config::LIVE_URL`], or a stand-in.
    pub base_url: Url,
    /// How long a TCP and TLS connection may take. Also the margin before a deadline within which no DELETE is begun.
    pub connect_timeout: Duration,
}

impl Config {
    /// Twilio itself.
    pub const LIVE_URL: &'static str = "https://conversations.twilio.com/";

    /// A lost packet of a handshake is sent again after one and after three seconds; four allow for both.
    pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(4);
}

/// Why a client could not be built.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// Not `AC` and 32 hexadecimal digits.
    #[error("account_sid: not a Twilio account SID")]
    Account,
    /// The key's SID has another shape than `SK…`, or the secret is empty or fits no header.
    #[error("key_sid, secret: not a usable Twilio API key")]
    Key,
    /// What the transport refused, named.
    #[error(transparent)]
    Transport(#[from] backline_provider_http::SetupError),
}

/// Twilio's Conversations API (v1, "classic") over our own transport; clones share one connection pool.
#[derive(Clone)]
pub struct Twilio {
    pub(crate) transport: Transport,
    pub(crate) authorization: HeaderValue,
    pub(crate) account_sid: String,
}

impl Twilio {
    /// Builds the client; connects to nothing.
    ///
    /// # Errors
    /// A setting that cannot work, named.
    pub fn new(config: Config) -> Result<Self, SetupError> {
        let user_agent = concat!("backline-twilio/", env!("CARGO_PKG_VERSION"));
        let account_sid = config.credentials.account_sid().ok_or(SetupError::Account)?.to_owned();
        let authorization = config.credentials.header().ok_or(SetupError::Key)?;
        let transport = Transport::new(&PROVIDER, user_agent, config.base_url, config.connect_timeout)?;
        Ok(Self { transport, authorization, account_sid })
    }
}

impl fmt::Debug for Twilio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Twilio").field("transport", &self.transport).finish_non_exhaustive()
    }
}
