//! `google.pubsub.v1.Subscriber`, except the streaming pull.

use super::publisher::{mask, named};
use super::{HttpRequest, HttpResponse, grpc, streaming, unary, unimplemented, verdict};
use crate::broker::{Broker, SeekTo};
use crate::wire::{RawPullResponse, RawStreamingPullResponse, unix_nanos};
use googleapis_tonic_google_pubsub_v1::google::pubsub::v1 as pb;
use std::sync::Arc;
use std::time::Duration;
use tonic::Status;

/// How long a pull waits for a first message before it answers with none.
const PULL_WAIT: Duration = Duration::from_secs(90);

/// Routes a subscriber call.
pub(super) async fn serve(broker: Arc<Broker>, method: &str, request: HttpRequest) -> HttpResponse {
    match method {
        "StreamingPull" => {
            grpc::<pb::StreamingPullRequest, RawStreamingPullResponse>()
                .streaming(streaming::StreamingPull(broker), request)
                .await
        }
        "Acknowledge" => unary(request, |r| async move { acknowledge(&broker, r) }).await,
        "ModifyAckDeadline" => unary(request, |r| async move { modify_deadline(&broker, r) }).await,
        "Pull" => unary(request, |r: pb::PullRequest| async move { pull(&broker, &r).await }).await,
        "CreateSubscription" => {
            unary(request, |r: pb::Subscription| async move { broker.create_subscription(r) }).await
        }
        "GetSubscription" => {
            unary(request, |r: pb::GetSubscriptionRequest| async move {
                Ok(broker.subscription(&r.subscription)?.config())
            })
            .await
        }
        "UpdateSubscription" => {
            unary(request, |r: pb::UpdateSubscriptionRequest| async move {
                broker.update_subscription(named(r.subscription, "subscription")?, &mask(r.update_mask))
            })
            .await
        }
        "ListSubscriptions" => {
            unary(request, |r: pb::ListSubscriptionsRequest| async move {
                let page = broker.list_subscriptions(&r.project, r.page_size, &r.page_token);
                Ok(pb::ListSubscriptionsResponse { subscriptions: page.items, next_page_token: page.next })
            })
            .await
        }
        "DeleteSubscription" => {
            unary(request, |r: pb::DeleteSubscriptionRequest| async move {
                broker.delete_subscription(&r.subscription)
            })
            .await
        }
        "ModifyPushConfig" => {
            unary(request, |r: pb::ModifyPushConfigRequest| async move {
                broker.modify_push_config(&r.subscription, r.push_config)
            })
            .await
        }
        _ => snapshots(broker, method, request).await,
    }
}

async fn snapshots(broker: Arc<Broker>, method: &str, request: HttpRequest) -> HttpResponse {
    match method {
        "CreateSnapshot" => {
            unary(request, |r: pb::CreateSnapshotRequest| async move { broker.create_snapshot(r) }).await
        }
        "GetSnapshot" => {
            unary(request, |r: pb::GetSnapshotRequest| async move { broker.get_snapshot(&r.snapshot) }).await
        }
        "UpdateSnapshot" => {
            unary(request, |r: pb::UpdateSnapshotRequest| async move {
                broker.update_snapshot(named(r.snapshot, "snapshot")?, &mask(r.update_mask))
            })
            .await
        }
        "ListSnapshots" => {
            unary(request, |r: pb::ListSnapshotsRequest| async move {
                let page = broker.list_snapshots(&r.project, r.page_size, &r.page_token);
                Ok(pb::ListSnapshotsResponse { snapshots: page.items, next_page_token: page.next })
            })
            .await
        }
        "DeleteSnapshot" => {
            unary(request, |r: pb::DeleteSnapshotRequest| async move { broker.delete_snapshot(&r.snapshot) })
                .await
        }
        "Seek" => {
            unary(request, |r: pb::SeekRequest| async move {
                let to = match named(r.target, "target")? {
                    pb::seek_request::Target::Time(time) => SeekTo::Time(unix_nanos(&time)),
                    pb::seek_request::Target::Snapshot(name) => SeekTo::Snapshot(name),
                };
                broker.seek(&r.subscription, to)?;
                Ok(pb::SeekResponse {})
            })
            .await
        }
        _ => unimplemented(method),
    }
}

/// Acknowledges; on exactly-once subscriptions ids that failed are an error.
pub(crate) fn acknowledge(broker: &Broker, request: pb::AcknowledgeRequest) -> Result<(), Status> {
    let subscription = broker.subscription(&request.subscription)?;
    let report = broker.acknowledge(&subscription, request.ack_ids)?;
    verdict::of(&subscription, &report)
}

/// Moves deadlines; on exactly-once subscriptions ids that failed are an error.
pub(crate) fn modify_deadline(broker: &Broker, request: pb::ModifyAckDeadlineRequest) -> Result<(), Status> {
    let subscription = broker.subscription(&request.subscription)?;
    let report = broker.modify_deadline(&subscription, request.ack_ids, request.ack_deadline_seconds)?;
    verdict::of(&subscription, &report)
}

/// Waits for at least one message, unless the client wants an answer at once.
pub(crate) async fn pull(broker: &Broker, request: &pb::PullRequest) -> Result<RawPullResponse, Status> {
    let messages = usize::try_from(request.max_messages).unwrap_or_default();
    if messages == 0 {
        return Err(Status::invalid_argument("max_messages: must be positive"));
    }
    let subscription = broker.subscription(&request.subscription)?;
    let receiver = broker.open_receiver(&subscription, messages, usize::MAX, None, false)?;
    broker.stats.pulls.add(1);
    let enough = tokio::time::sleep(PULL_WAIT);
    tokio::pin!(enough);
    loop {
        let received_messages = broker.take(&receiver)?.messages;
        #[expect(deprecated, reason = "clients still send the field")]
        let at_once = request.return_immediately;
        if !received_messages.is_empty() || at_once {
            return Ok(RawPullResponse { received_messages });
        }
        tokio::select! {
            () = receiver.woken() => {}
            () = &mut enough => return Ok(RawPullResponse::default()),
            () = broker.stopping.cancelled() => return Err(Status::unavailable("the emulator stops")),
        }
    }
}
