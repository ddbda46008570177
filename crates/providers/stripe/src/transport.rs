//! One request, one answer, no retry: the runtime decides about repeats, because only it knows the lease, the window
//! of the key and what may have left.
//!
//! The typed requests of `async-stripe` are built with [`StripeRequest::build`] and sent from here rather than through
//! its `StripeClient` trait: the trait returns the body alone, and the request id, the replay mark and the retry advice
//! of the headers would be lost exactly for the answers that do not parse.

use backline_failure::{Call, Failure};
use backline_provider_http::BodyLost;
use http::header::AUTHORIZATION;
use serde::de::DeserializeOwned;
use stripe_client_core::{RequestBuilder, StripeMethod, StripeRequest};

use crate::Stripe;
use crate::failure_table::{Asked, refusal, unreadable};
use crate::form::canonical;
use crate::reply::Reply;

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
            let refusal = refusal(&reply, asked);
            call.heed(&refusal).await;
            return Err(refusal);
        }
        match serde_json::from_slice(&reply.body) {
            Ok(value) => Ok(Answer { value, reply, asked }),
            Err(error) => Err(unreadable(&reply, asked, "stripe.unreadable_answer", &error.to_string())),
        }
    }

    async fn carry(
        &self,
        call: &Call,
        account: Option<&str>,
        request: RequestBuilder,
        asked: Asked,
    ) -> Result<Reply, Failure> {
        let (request, form) = self.prepare(call, account, request, asked)?;
        let answer = match asked {
            Asked::Read => self.transport.read(call, request).await?,
            Asked::Write | Asked::WriteConnected => self.transport.write(call, request, form).await?,
        };
        let mut reply = Reply::from_head(&answer);
        match answer.body {
            Ok(body) => reply.body = body,
            // The head of the answer arrived, so its facts are kept with the loss.
            Err(lost) => {
                let name = match lost {
                    BodyLost::TooLarge => "stripe.answer_too_large",
                    BodyLost::Cut(_) => "stripe.answer_lost",
                };
                return Err(unreadable(&reply, asked, name, &lost.to_string()));
            }
        }
        Ok(reply)
    }

    fn prepare(
        &self,
        call: &Call,
        account: Option<&str>,
        request: RequestBuilder,
        asked: Asked,
    ) -> Result<(reqwest::RequestBuilder, String), Failure> {
        let invalid = |detail: &str| Failure::poison("stripe.invalid_request").with_detail(detail);
        let method = match request.method {
            StripeMethod::Get => http::Method::GET,
            StripeMethod::Post => http::Method::POST,
            StripeMethod::Delete => http::Method::DELETE,
        };
        let mut url = self
            .transport
            .base_url()
            .join(&format!("v1{}", request.path))
            .map_err(|_| invalid("the path does not form a URL"))?;
        url.set_query(request.query.as_deref().filter(|query| !query.is_empty()));
        let mut builder = self
            .transport
            .request(call, method, url)
            .header(AUTHORIZATION, self.authorization.clone())
            .header("stripe-version", stripe_shared::version::VERSION.as_str());
        let mut form = String::new();
        if asked != Asked::Read {
            if call.key.is_empty() || call.key.len() > KEY_LIMIT {
                return Err(invalid("the idempotency key is empty or longer than 255 bytes"));
            }
            form = canonical(request.body.as_deref().unwrap_or_default());
            if backline_crash_point::seeded_bug(7) {
                form.push_str(&format!("&metadata[attempt]={}", call.attempt));
            }
            builder = builder.header("idempotency-key", &call.key);
        }
        if let Some(account) = account {
            builder = builder.header("stripe-account", account);
        }
        Ok((builder, form))
    }
}
