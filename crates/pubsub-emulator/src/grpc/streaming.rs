//! `StreamingPull`: one task reads what the client sends, the response stream hands messages out.

use super::reset::Reset;
use super::verdict;
use crate::broker::{Broker, Receiver};
use crate::faults::StreamEnd;
use crate::wire::RawStreamingPullResponse;
use futures_util::Stream;
use futures_util::future::BoxFuture;
use googleapis_tonic_google_pubsub_v1::google::pubsub::v1 as pb;
use pb::streaming_pull_response::SubscriptionProperties;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::mpsc;
use tonic::{Request, Response, Status, Streaming};

type Answer = Result<RawStreamingPullResponse, Status>;
type Answers = Pin<Box<dyn Stream<Item = Answer> + Send>>;

/// The call as a service.
pub(super) struct StreamingPull(pub(super) Arc<Broker>);

impl tower::Service<Request<Streaming<pb::StreamingPullRequest>>> for StreamingPull {
    type Response = Response<Answers>;
    type Error = Status;
    type Future = BoxFuture<'static, Result<Self::Response, Status>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Streaming<pb::StreamingPullRequest>>) -> Self::Future {
        Box::pin(open(Arc::clone(&self.0), request.into_inner()))
    }
}

/// What the reader tells the response stream.
enum Said {
    Answer(RawStreamingPullResponse),
    Failed(Status),
    /// The client closed its side.
    Closed,
}

struct Session {
    broker: Arc<Broker>,
    receiver: Arc<Receiver>,
    said: mpsc::UnboundedReceiver<Said>,
    sent: u64,
    ended: bool,
    reset: Reset,
}

async fn open(
    broker: Arc<Broker>,
    mut frames: Streaming<pb::StreamingPullRequest>,
) -> Result<Response<Answers>, Status> {
    let first =
        frames.message().await?.ok_or_else(|| Status::invalid_argument("subscription: no request came"))?;
    let subscription = broker.subscription(&first.subscription)?;
    let deadline = broker.check_deadline(first.stream_ack_deadline_seconds)?;
    let limit = |n: i64| usize::try_from(n).ok().filter(|n| *n > 0).unwrap_or(usize::MAX);
    let receiver = broker.open_receiver(
        &subscription,
        limit(first.max_outstanding_messages),
        limit(first.max_outstanding_bytes),
        Some(deadline),
        true,
    )?;
    broker.stats.streams_opened.add(1);
    let receiver = Arc::new(receiver);
    let (say, said) = mpsc::unbounded_channel();
    let reader = Reader { broker: Arc::clone(&broker), receiver: Arc::clone(&receiver), say };
    tokio::spawn(reader.run(first, frames));
    let reset = Reset::default();
    let session = Session { broker, receiver, said, sent: 0, ended: false, reset: reset.clone() };
    let answers: Answers = Box::pin(futures_util::stream::unfold(session, Session::next));
    let mut response = Response::new(answers);
    response.extensions_mut().insert(reset);
    Ok(response)
}

impl Session {
    async fn next(mut self) -> Option<(Answer, Self)> {
        if self.ended {
            return None;
        }
        let answer = self.answer().await?;
        self.ended = answer.is_err();
        Some((answer, self))
    }

    /// The next response; `None` is a clean end.
    async fn answer(&mut self) -> Option<Answer> {
        loop {
            match self.broker.faults.stream_end(&self.receiver.subscription.name, self.sent) {
                Some(StreamEnd::Clean) => return None,
                Some(StreamEnd::Reset) => {
                    self.reset.0.cancel();
                    // The response ends from outside, without trailers.
                    std::future::pending::<()>().await;
                }
                Some(StreamEnd::Failed(status)) => return Some(Err(status)),
                None => {}
            }
            match self.said.try_recv() {
                Ok(said) => return self.hear(said),
                Err(mpsc::error::TryRecvError::Empty | mpsc::error::TryRecvError::Disconnected) => {}
            }
            let batch = match self.broker.take(&self.receiver) {
                Ok(batch) => batch,
                Err(status) => return Some(Err(status)),
            };
            if !batch.messages.is_empty() {
                self.sent += batch.messages.len() as u64;
                return Some(Ok(RawStreamingPullResponse {
                    received_messages: batch.messages,
                    subscription_properties: Some(SubscriptionProperties {
                        exactly_once_delivery_enabled: batch.exactly_once,
                        message_ordering_enabled: batch.ordered,
                    }),
                    ..Default::default()
                }));
            }
            tokio::select! {
                said = self.said.recv() => return self.hear(said.unwrap_or(Said::Closed)),
                () = self.receiver.woken() => {}
                () = self.broker.stopping.cancelled() => {
                    return Some(Err(Status::unavailable("the emulator stops")));
                }
            }
        }
    }

    fn hear(&mut self, said: Said) -> Option<Answer> {
        match said {
            Said::Answer(answer) => Some(Ok(answer)),
            Said::Failed(status) => Some(Err(status)),
            Said::Closed => None,
        }
    }
}

/// Reads the client's frames.
struct Reader {
    broker: Arc<Broker>,
    receiver: Arc<Receiver>,
    say: mpsc::UnboundedSender<Said>,
}

impl Reader {
    async fn run(self, first: pb::StreamingPullRequest, mut frames: Streaming<pb::StreamingPullRequest>) {
        let heartbeats = first.protocol_version >= 1;
        let mut next = self.apply(first, true);
        loop {
            match next {
                Ok(Some(answer)) => {
                    let _ = self.say.send(Said::Answer(answer));
                }
                // A frame that asks for nothing is a keepalive.
                Ok(None) if heartbeats => {
                    let _ = self.say.send(Said::Answer(RawStreamingPullResponse::default()));
                }
                Ok(None) => {}
                Err(status) => {
                    let _ = self.say.send(Said::Failed(status));
                    return;
                }
            }
            let frame = tokio::select! {
                frame = frames.message() => frame,
                () = self.say.closed() => return,
            };
            match frame {
                Ok(Some(frame)) => {
                    self.receiver.heard();
                    next = self.apply(frame, false);
                }
                Ok(None) | Err(_) => {
                    let _ = self.say.send(Said::Closed);
                    return;
                }
            }
        }
    }

    fn apply(
        &self,
        frame: pb::StreamingPullRequest,
        first: bool,
    ) -> Result<Option<RawStreamingPullResponse>, Status> {
        if !first && (frame.max_outstanding_messages != 0 || frame.max_outstanding_bytes != 0) {
            return Err(Status::invalid_argument("flow control can only be set in the first request"));
        }
        if frame.modify_deadline_ack_ids.len() != frame.modify_deadline_seconds.len() {
            return Err(Status::invalid_argument(
                "modify_deadline_seconds: needs one entry for each of modify_deadline_ack_ids",
            ));
        }
        if frame.stream_ack_deadline_seconds != 0 {
            self.receiver.set_deadline(self.broker.check_deadline(frame.stream_ack_deadline_seconds)?);
        }
        let subscription = &self.receiver.subscription;
        let confirms = subscription.config().enable_exactly_once_delivery;
        let mut answer = RawStreamingPullResponse::default();
        if !frame.ack_ids.is_empty() {
            let report = self.broker.acknowledge(subscription, frame.ack_ids)?;
            answer.acknowledge_confirmation = Some(verdict::acknowledged(report));
        }
        let mut by_deadline: BTreeMap<i32, Vec<String>> = BTreeMap::new();
        for (id, seconds) in frame.modify_deadline_ack_ids.into_iter().zip(frame.modify_deadline_seconds) {
            by_deadline.entry(seconds).or_default().push(id);
        }
        let mut changed = pb::streaming_pull_response::ModifyAckDeadlineConfirmation::default();
        for (seconds, ids) in by_deadline {
            let report = verdict::deadlines(self.broker.modify_deadline(subscription, ids, seconds)?);
            changed.ack_ids.extend(report.ack_ids);
            changed.invalid_ack_ids.extend(report.invalid_ack_ids);
        }
        let moved = !(changed.ack_ids.is_empty() && changed.invalid_ack_ids.is_empty());
        let asked = moved || answer.acknowledge_confirmation.is_some();
        if !asked {
            return Ok((first || frame.stream_ack_deadline_seconds != 0).then(|| self.greeting()));
        }
        answer.modify_ack_deadline_confirmation = moved.then_some(changed);
        Ok(Some(if confirms { answer } else { RawStreamingPullResponse::default() }))
    }

    /// The modes of the subscription, told before any message.
    fn greeting(&self) -> RawStreamingPullResponse {
        let config = self.receiver.subscription.config();
        RawStreamingPullResponse {
            subscription_properties: Some(SubscriptionProperties {
                exactly_once_delivery_enabled: config.enable_exactly_once_delivery,
                message_ordering_enabled: config.enable_message_ordering,
            }),
            ..Default::default()
        }
    }
}
