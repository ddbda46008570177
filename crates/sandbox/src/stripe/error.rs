//! Stripe's error envelope. Types and codes: <https://docs.stripe.com/api/errors>.

use std::ops::{Deref, DerefMut};

use serde_json::{Map, Value, json};

use crate::faults::RetryAfter;
use crate::reply::Reply;

/// An error answer before it is turned into a reply; boxed, because most calls do not fail.
#[derive(Debug, Clone)]
pub(crate) struct ApiError(Box<Envelope>);

/// Status, headers and the fields of the envelope.
#[derive(Debug, Clone)]
pub(crate) struct Envelope {
    pub(crate) status: u16,
    pub(crate) kind: String,
    pub(crate) code: Option<String>,
    pub(crate) message: String,
    pub(crate) param: Option<String>,
    pub(crate) decline_code: Option<String>,
    /// The intent a declined confirmation leaves behind.
    pub(crate) payment_intent: Option<Value>,
    pub(crate) headers: Vec<(&'static str, String)>,
}

impl ApiError {
    pub(crate) fn new(status: u16, kind: &str, code: Option<&str>, message: impl Into<String>) -> Self {
        Self(Box::new(Envelope {
            status,
            kind: kind.to_owned(),
            code: code.map(str::to_owned),
            message: message.into(),
            param: None,
            decline_code: None,
            payment_intent: None,
            headers: Vec::new(),
        }))
    }

    /// 400 `invalid_request_error`.
    pub(crate) fn invalid(code: Option<&str>, param: &str, message: impl Into<String>) -> Self {
        let mut error = Self::new(400, "invalid_request_error", code, message);
        if !param.is_empty() {
            error.param = Some(param.to_owned());
        }
        error
    }

    /// 404 of a retrieve, 400 when the id was a parameter.
    pub(crate) fn missing(status: u16, kind: &str, id: &str, param: &str) -> Self {
        let mut error = Self::invalid(Some("resource_missing"), param, format!("No such {kind}: '{id}'"));
        error.status = status;
        error
    }

    pub(crate) fn should_retry(self, retry: bool) -> Self {
        self.with("stripe-should-retry", retry.to_string())
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn retry_after(self, value: Option<&RetryAfter>) -> Self {
        match value.and_then(RetryAfter::header_text) {
            Some(text) => self.with("retry-after", text),
            None => self,
        }
    }

    /// The envelope as text.
    pub(crate) fn body(&self) -> String {
        let mut error = Map::new();
        error.insert("type".to_owned(), json!(self.kind));
        error.insert("message".to_owned(), json!(self.message));
        let optional = [("code", &self.code), ("param", &self.param), ("decline_code", &self.decline_code)];
        for (name, value) in optional {
            if let Some(value) = value {
                error.insert(name.to_owned(), json!(value));
            }
        }
        if let Some(code) = &self.code {
            let url = format!("https://docs.stripe.com/error-codes/{}", code.replace('_', "-"));
            error.insert("doc_url".to_owned(), json!(url));
        }
        if let Some(intent) = &self.payment_intent {
            error.insert("payment_intent".to_owned(), intent.clone());
        }
        json!({ "error": error }).to_string()
    }

    pub(crate) fn into_reply(self) -> Reply {
        let mut reply = Reply::json(self.status, self.body());
        reply.headers.extend(self.0.headers);
        reply
    }
}

impl Deref for ApiError {
    type Target = Envelope;

    fn deref(&self) -> &Envelope {
        &self.0
    }
}

impl DerefMut for ApiError {
    fn deref_mut(&mut self) -> &mut Envelope {
        &mut self.0
    }
}
