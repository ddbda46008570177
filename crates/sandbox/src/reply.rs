//! What goes back to the caller, and how badly.

use std::io;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{HeaderName, HeaderValue, StatusCode, header};

/// Marks a response whose connection must be closed before a byte of it is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CloseSocket;

/// A finished answer.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) content_type: &'static str,
    pub(crate) headers: Vec<(&'static str, String)>,
    /// Headers named by a fault rule.
    pub(crate) extra: Vec<(String, String)>,
    pub(crate) body: Bytes,
    pub(crate) delivery: Delivery,
}

/// How the answer travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivery {
    Whole,
    Drip { chunk: usize, every: Duration },
    Reset { after_bytes: usize },
    Dropped,
}

impl Reply {
    pub(crate) fn json(status: u16, body: impl Into<Bytes>) -> Self {
        Self {
            status,
            content_type: "application/json",
            headers: Vec::new(),
            extra: Vec::new(),
            body: body.into(),
            delivery: Delivery::Whole,
        }
    }

    pub(crate) fn dropped() -> Self {
        Self { delivery: Delivery::Dropped, ..Self::json(200, Bytes::new()) }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// The HTTP response; an invalid status or header of a rule becomes a 500 with a named reason.
    pub(crate) fn into_response(self) -> Response {
        let (length, body) = match self.delivery {
            Delivery::Dropped => {
                let mut response = Response::new(Body::empty());
                response.extensions_mut().insert(CloseSocket);
                return response;
            }
            Delivery::Whole => (None, Body::from(self.body)),
            Delivery::Drip { chunk, every } => (None, drip(self.body, chunk.max(1), every)),
            Delivery::Reset { after_bytes } => (Some(self.body.len()), reset(self.body, after_bytes)),
        };
        let mut response = Response::new(body);
        let Ok(status) = StatusCode::from_u16(self.status) else {
            return unsendable("fault names an invalid HTTP status");
        };
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        if let Some(length) = length {
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
        }
        let named = self.headers.iter().map(|(name, value)| (*name, value.as_str()));
        let extra = self.extra.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in named.chain(extra) {
            match (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                (Ok(name), Ok(value)) => headers.insert(name, value),
                _ => return unsendable("fault names an invalid HTTP header"),
            };
        }
        response
    }
}

fn unsendable(reason: &'static str) -> Response {
    let mut response = Response::new(Body::from(reason));
    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    response
}

fn drip(body: Bytes, chunk: usize, every: Duration) -> Body {
    Body::from_stream(stream::unfold(body, move |mut rest| async move {
        if rest.is_empty() {
            return None;
        }
        tokio::time::sleep(every).await;
        let piece = rest.split_to(chunk.min(rest.len()));
        Some((Ok::<_, io::Error>(piece), rest))
    }))
}

/// Sends the first bytes of a body that was announced in full, then fails: hyper closes the socket.
fn reset(body: Bytes, after_bytes: usize) -> Body {
    let head = body.slice(..after_bytes.min(body.len()));
    let cut = Err(io::Error::new(io::ErrorKind::ConnectionReset, "reply cut by a fault rule"));
    Body::from_stream(stream::iter([Ok(head)]).chain(stream::once(async move {
        // Let the head reach the wire first, or both would vanish together.
        tokio::time::sleep(Duration::from_millis(20)).await;
        cut
    })))
}
