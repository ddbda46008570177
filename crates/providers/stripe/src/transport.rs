//! One request, one answer, no retry: the runtime decides about repeats, because only it knows the lease, the window
//! of the key and what may have left.
//!
//! The typed requests of `async-stripe` are built with [`StripeRequest::build`] and sent from here rather than through
//! its `StripeClient` trait: the trait returns the body alone, and the request id, the replay mark and the retry advice
//! of the headers would be lost exactly for the answers that do not parse.

use backline_failure::{Call, Failure};
use bytes::{Bytes, BytesMut};
use http::HeaderValue;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use serde::de::DeserializeOwned;
use stripe_client_core::{RequestBuilder, StripeMethod, StripeRequest};

use crate::Stripe;
use crate::failure_table::{Asked, refusal, unreadable};
use crate::form::canonical;
use crate::guarded_body::{Gate, GuardedBody};
use crate::reply::Reply;

/// The largest answer read. A page of 100 payment intents is a few hundred kilobytes; more is not Stripe talking.
const BODY_LIMIT: usize = 1024 * 1024;

/// Longest idempotency key that Stripe takes, in bytes.
const KEY_LIMIT: usize = 255;

/// A typed answer together with the raw one, so that a caller who disbelieves it can say what it was.
pub(crate) struct Answer<T> {
    pub(crate) value: T,
    pub(crate) reply: Reply,
    pub(crate) asked: Asked,
}

impl Stripe {
    /// Sends a typed request on the platform's account, or on behalf of `account`.
    pub(crate) async fn ask<R>(
        &self,
        call: &Call,
        account: Option<&str>,
        request: &R,
    ) -> Result<Answer<R::Output>, Failure>
    where
        R: StripeRequest,
        R::Output: DeserializeOwned,
    {
        let request = request.build();
        let asked = match (request.method, account) {
            (StripeMethod::Get, _) => Asked::Read,
            (_, Some(_)) => Asked::WriteConnected,
            (_, None) => Asked::Write,
        };
        let reply = self.carry(call, account, request, asked).await?;
        if !(200..300).contains(&reply.status) {
            return Err(refusal(&reply, asked));
        }
        match serde_json::from_slice(&reply.body) {
            Ok(value) => Ok(Answer { value, reply, asked }),
            Err(error) => Err(unreadable(&reply, asked, "stripe.unreadable_answer", &error.to_string())),
        }
    }

    /// The whole exchange under `call.timeout`. The body of a POST marks the call just before it may leave.
    async fn carry(
        &self,
        call: &Call,
        account: Option<&str>,
        request: RequestBuilder,
        asked: Asked,
    ) -> Result<Reply, Failure> {
        let gate = Gate::default();
        let request = self.prepare(call, account, request, asked, gate.clone())?;
        if call.deadline.passed() {
            return Err(late());
        }
        let outcome = match self.http.execute(request).await {
            Ok(response) => read(response, asked).await,
            Err(error) => Err(lost(&error, call, &gate)),
        };
        if asked != Asked::Read {
            backline_crash_point::reach("stripe.request.after");
        }
        outcome
    }

    fn prepare(
        &self,
        call: &Call,
        account: Option<&str>,
        request: RequestBuilder,
        asked: Asked,
        gate: Gate,
    ) -> Result<reqwest::Request, Failure> {
        let invalid = |detail: &str| Failure::poison("stripe.invalid_request").with_detail(detail);
        let method = match request.method {
            StripeMethod::Get => http::Method::GET,
            StripeMethod::Post => http::Method::POST,
            StripeMethod::Delete => http::Method::DELETE,
        };
        let mut url = self
            .base_url
            .join(&format!("v1{}", request.path))
            .map_err(|_| invalid("the path does not form a URL"))?;
        url.set_query(request.query.as_deref().filter(|query| !query.is_empty()));
        let mut builder = self
            .http
            .request(method, url)
            .timeout(call.timeout)
            .header(AUTHORIZATION, self.authorization.clone())
            .header("stripe-version", stripe_shared::version::VERSION.as_str());
        if asked != Asked::Read {
            if call.key.is_empty() || call.key.len() > KEY_LIMIT {
                return Err(invalid("the idempotency key is empty or longer than 255 bytes"));
            }
            let mut form = canonical(request.body.as_deref().unwrap_or_default());
            if backline_crash_point::seeded_bug(7) {
                form.push_str(&format!("&metadata[attempt]={}", call.attempt));
            }
            if form.is_empty() {
                return Err(invalid("a request without parameters names no operation"));
            }
            builder = builder
                .header("idempotency-key", &call.key)
                .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
                .body(reqwest::Body::wrap(GuardedBody::new(form, call.clone(), gate)));
        }
        if let Some(account) = account {
            builder = builder.header("stripe-account", account);
        }
        if let Some(trace) = call.traceparent.as_deref().and_then(|text| HeaderValue::from_str(text).ok()) {
            builder = builder.header("traceparent", trace);
        }
        builder.build().map_err(|error| invalid(&error.without_url().to_string()))
    }
}

async fn read(mut response: reqwest::Response, asked: Asked) -> Result<Reply, Failure> {
    let mut reply = Reply::from_head(response.status().as_u16(), response.headers());
    let mut body = BytesMut::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() > BODY_LIMIT => {
                return Err(unreadable(&reply, asked, "stripe.answer_too_large", "more than 1 MiB"));
            }
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => break,
            Err(error) => {
                // The head of the answer arrived, so its facts are kept with the loss.
                let why = chain(&error);
                return Err(unreadable(&reply, asked, "stripe.answer_lost", &why));
            }
        }
    }
    reply.body = Bytes::from(body);
    Ok(reply)
}

/// A request that brought no answer. Unless its body was handed over, it is certain that nothing was executed; a GET
/// has no such body and no effect.
fn lost(error: &reqwest::Error, call: &Call, gate: &Gate) -> Failure {
    let name = match (error.is_connect(), error.is_timeout()) {
        (true, _) => "stripe.connect_failed",
        (false, true) => "stripe.timeout",
        (false, false) => "stripe.connection_lost",
    };
    match gate.was_passed() {
        true => Failure::unknown(name).with_detail(chain(error)),
        false if call.deadline.passed() => late(),
        false => Failure::transient(name).with_detail(chain(error)),
    }
}

fn late() -> Failure {
    Failure::transient("stripe.deadline_passed")
        .with_detail("the lease no longer covers a request, so none was sent")
}

/// The causes of a transport error, without its URL, whose query may name a customer.
fn chain(error: &reqwest::Error) -> String {
    let mut text = String::new();
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(&next.to_string());
        cause = next.source();
    }
    text
}
