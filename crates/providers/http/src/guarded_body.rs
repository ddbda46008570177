use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use backline_failure::Call;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// The deadline passed while a connection was being made.
#[derive(Debug, thiserror::Error)]
#[error("the deadline passed before the request could leave")]
pub(crate) struct DeadlinePassed;

/// The body of a write, handed over at the last moment.
///
/// The HTTP client asks for it once a connection stands and the head lies in its buffer, so this is where the deadline
/// is checked for the last time and where the call is marked, neither before nor after the first byte. A head without
/// its body is not a request that anybody executes.
pub(crate) struct GuardedBody {
    bytes: Option<Bytes>,
    call: Call,
    handed_over: HandedOver,
    /// Crash point of the provider.
    before: &'static str,
}

/// Says whether one request's body was handed over; the mark of a call may be older than the request.
#[derive(Debug, Clone, Default)]
pub(crate) struct HandedOver(Arc<AtomicBool>);

impl HandedOver {
    pub(crate) fn was_passed(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// Notes on the call and here that the request may leave from now on.
    pub(crate) fn pass(&self, call: &Call, before: &'static str) {
        self.0.store(true, Ordering::Release);
        call.mark_may_have_left();
        backline_crash_point::reach(before);
    }
}

impl GuardedBody {
    /// A body of at least one byte: the client never asks for an empty one.
    pub(crate) fn new(body: String, call: Call, handed_over: HandedOver, before: &'static str) -> Self {
        Self { bytes: Some(Bytes::from(body)), call, handed_over, before }
    }
}

impl Body for GuardedBody {
    type Data = Bytes;
    type Error = DeadlinePassed;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, DeadlinePassed>>> {
        let Some(bytes) = self.bytes.take() else { return Poll::Ready(None) };
        if self.call.deadline.passed() {
            return Poll::Ready(Some(Err(DeadlinePassed)));
        }
        self.handed_over.pass(&self.call, self.before);
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use backline_failure::Deadline;
    use uuid::Uuid;

    use super::*;

    fn polled(deadline: Duration) -> (bool, Call, HandedOver) {
        let key = "key".to_owned();
        let call = Call::new(Uuid::nil(), 1, 1, 1, key, Duration::from_secs(1), Deadline::after(deadline));
        let handed_over = HandedOver::default();
        let mut body =
            GuardedBody::new("a=1".to_owned(), call.clone(), handed_over.clone(), "x.request.before");
        assert!(!call.may_have_left() && body.size_hint().exact() == Some(3));
        let mut context = Context::from_waker(std::task::Waker::noop());
        let frame = Pin::new(&mut body).poll_frame(&mut context);
        (matches!(frame, Poll::Ready(Some(Ok(_)))), call, handed_over)
    }

    #[test]
    fn the_mark_is_made_when_the_body_is_handed_over() {
        let (sent, call, handed_over) = polled(Duration::from_secs(60));
        assert!(sent && call.may_have_left() && handed_over.was_passed());
    }

    #[test]
    fn a_connection_that_took_until_the_deadline_carries_nothing() {
        let (sent, call, handed_over) = polled(Duration::ZERO);
        assert!(!sent && !call.may_have_left() && !handed_over.was_passed());
    }
}
