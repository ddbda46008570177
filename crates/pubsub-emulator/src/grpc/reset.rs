//! Ending a response with an HTTP/2 reset instead of trailers, as a proxy or a crash in between does.

use super::HttpResponse;
use axum::body::{Body, Bytes, HttpBody};
use http_body::{Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// Asks for the reset of the response it travels with.
#[derive(Clone, Debug, Default)]
pub(super) struct Reset(pub(super) CancellationToken);

/// Makes the response end when its [`Reset`] asks for it.
pub(super) fn resettable(mut response: HttpResponse) -> http::Response<Body> {
    match response.extensions_mut().remove::<Reset>() {
        Some(Reset(asked)) => response.map(|body| {
            Body::new(Resettable { body: Box::pin(body), asked: Box::pin(asked.cancelled_owned()) })
        }),
        None => response.map(Body::new),
    }
}

struct Resettable {
    body: Pin<Box<tonic::body::Body>>,
    asked: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl HttpBody for Resettable {
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.asked.as_mut().poll(context).is_ready() {
            return Poll::Ready(Some(Err("fault: stream is reset".into())));
        }
        self.body.as_mut().poll_frame(context).map_err(Into::into)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
