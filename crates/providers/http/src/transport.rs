use std::fmt;
use std::time::Duration;

use backline_failure::{Call, Failure};
use http::Method;
use http::header::{CONTENT_TYPE, HeaderValue};
use url::Url;

use crate::Provider;
use crate::answer::{Answer, chain};
use crate::guarded_body::{GuardedBody, HandedOver};
use crate::span;

/// Why a transport could not be built.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
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

/// Carries one request at a time to one provider; clones share one connection pool.
///
/// Every request is admitted by its call first ([`Call::admit`]): a provider counts requests, not attempts. A wait for
/// that is over before anything is marked or sent, and the deadline is asked after it.
#[derive(Clone)]
pub struct Transport {
    provider: &'static Provider,
    http: reqwest::Client,
    base_url: Url,
    connect_timeout: Duration,
}

impl Transport {
    /// Builds the client; connects to nothing. `base_url` gets a trailing slash, so that paths can be joined to it;
    /// ending a connection attempt after `connect_timeout` is still a definite "nothing left".
    ///
    /// # Errors
    /// A setting that cannot work, named.
    pub fn new(
        provider: &'static Provider,
        user_agent: &str,
        mut base_url: Url,
        connect_timeout: Duration,
    ) -> Result<Self, SetupError> {
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
            .user_agent(user_agent)
            .connect_timeout(connect_timeout)
            // Shorter than any balancer's own limit: a write on a connection that is just being closed is an unknown.
            .pool_idle_timeout(Duration::from_secs(30))
            // A redirected write would be a second request that nobody decided on, to a host nobody configured.
            .redirect(reqwest::redirect::Policy::none())
            // Retries belong to the runtime, which knows the lease and the key's window.
            .retry(reqwest::retry::never())
            .build()?;
        Ok(Self { provider, http, base_url, connect_timeout })
    }

    /// Where the provider is, with a trailing slash.
    #[must_use]
    pub fn base_url(&self) -> &Url {
        &self.base_url
    }

    /// A request within `call.timeout`; it gets the trace context when it is sent.
    pub fn request(&self, call: &Call, method: Method, url: Url) -> reqwest::RequestBuilder {
        self.http.request(method, url).timeout(call.timeout)
    }

    /// Sends a request that has no effect, so it does not mark the call.
    ///
    /// # Errors
    /// No answer came: always transient. Poison if the request cannot be built, the gate's if it was not admitted.
    pub async fn read(&self, call: &Call, request: reqwest::RequestBuilder) -> Result<Answer, Failure> {
        let request = self.build(request)?;
        let _permit = call.admit().await?;
        if call.deadline.passed() {
            return Err(self.late());
        }
        self.execute(call, request, &HandedOver::default()).await
    }

    /// Sends a body, and marks the call just before its first byte may leave. It is a form unless the request names
    /// another type of content.
    ///
    /// # Errors
    /// No answer came: transient while it is certain that nothing was executed, else unknown. Poison if the request
    /// cannot be built, or the body is empty: the client never asks for an empty one, so nothing would be marked. The
    /// gate's if it was not admitted.
    pub async fn write(
        &self,
        call: &Call,
        request: reqwest::RequestBuilder,
        body: String,
    ) -> Result<Answer, Failure> {
        if body.is_empty() {
            return Err(self.invalid("a write without parameters"));
        }
        let handed_over = HandedOver::default();
        let body = GuardedBody::new(body, call.clone(), handed_over.clone(), self.provider.before);
        let mut request = self.build(request.body(reqwest::Body::wrap(body)))?;
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        request.headers_mut().entry(CONTENT_TYPE).or_insert(form);
        let _permit = call.admit().await?;
        if call.deadline.passed() {
            return Err(self.late());
        }
        self.carry(call, request, &handed_over).await
    }

    /// Sends a DELETE. It has no body whose handing over could be watched, so the call is marked before the connection
    /// is made, and it is not sent at all unless the deadline leaves time for making one.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub async fn delete(&self, call: &Call, request: reqwest::RequestBuilder) -> Result<Answer, Failure> {
        let request = self.build(request)?;
        let _permit = call.admit().await?;
        if call.deadline.remaining() <= self.connect_timeout {
            return Err(self.late());
        }
        let handed_over = HandedOver::default();
        handed_over.pass(call, self.provider.before);
        self.carry(call, request, &handed_over).await
    }

    async fn carry(
        &self,
        call: &Call,
        request: reqwest::Request,
        handed_over: &HandedOver,
    ) -> Result<Answer, Failure> {
        let outcome = self.execute(call, request, handed_over).await;
        backline_crash_point::reach(self.provider.after);
        outcome
    }

    async fn execute(
        &self,
        call: &Call,
        mut request: reqwest::Request,
        handed_over: &HandedOver,
    ) -> Result<Answer, Failure> {
        let span = span::begin(self.provider, call, &mut request);
        let outcome = match self.http.execute(request).await {
            Ok(response) => Ok(Answer::read(response).await),
            Err(error) => Err(self.lost(&error, call, handed_over)),
        };
        span::end(span, &outcome);
        outcome
    }

    fn build(&self, request: reqwest::RequestBuilder) -> Result<reqwest::Request, Failure> {
        request.build().map_err(|error| self.invalid(&error.without_url().to_string()))
    }

    /// A request that brought no answer. Unless it was handed over to a connection, it is certain that nothing was
    /// executed; a read has no effect either way.
    fn lost(&self, error: &reqwest::Error, call: &Call, handed_over: &HandedOver) -> Failure {
        let name = match (error.is_connect(), error.is_timeout()) {
            (true, _) => "connect_failed",
            (false, true) => "timeout",
            (false, false) => "connection_lost",
        };
        match handed_over.was_passed() && !error.is_connect() {
            true => Failure::unknown(self.code(name)).with_detail(chain(error)),
            false if call.deadline.passed() => self.late(),
            false => Failure::transient(self.code(name)).with_detail(chain(error)),
        }
    }

    fn late(&self) -> Failure {
        Failure::transient(self.code("deadline_passed"))
            .with_detail("the lease no longer covers a request, so none was sent")
    }

    fn invalid(&self, detail: &str) -> Failure {
        Failure::poison(self.code("invalid_request")).with_detail(detail)
    }

    fn code(&self, name: &str) -> String {
        format!("{}.{name}", self.provider.name)
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport").field("base_url", &self.base_url.as_str()).finish_non_exhaustive()
    }
}
