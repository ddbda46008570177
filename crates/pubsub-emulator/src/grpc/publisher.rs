//! `google.pubsub.v1.Publisher`.

use super::{HttpRequest, HttpResponse, unary, unimplemented};
use crate::broker::Broker;
use googleapis_tonic_google_pubsub_v1::google::pubsub::v1 as pb;
use std::sync::Arc;
use tonic::Status;

/// Routes a publisher call.
pub(super) async fn serve(broker: Arc<Broker>, method: &str, request: HttpRequest) -> HttpResponse {
    match method {
        "Publish" => {
            unary(request, |r: pb::PublishRequest| async move {
                let message_ids = broker.publish(&r.topic, r.messages)?;
                Ok(pb::PublishResponse { message_ids })
            })
            .await
        }
        "CreateTopic" => unary(request, |r: pb::Topic| async move { broker.create_topic(r) }).await,
        "GetTopic" => {
            unary(request, |r: pb::GetTopicRequest| async move { Ok(broker.topic(&r.topic)?.config()) }).await
        }
        "UpdateTopic" => {
            unary(request, |r: pb::UpdateTopicRequest| async move {
                broker.update_topic(named(r.topic, "topic")?, &mask(r.update_mask))
            })
            .await
        }
        "DeleteTopic" => {
            unary(request, |r: pb::DeleteTopicRequest| async move { broker.delete_topic(&r.topic) }).await
        }
        "ListTopics" => {
            unary(request, |r: pb::ListTopicsRequest| async move {
                let page = broker.list_topics(&r.project, r.page_size, &r.page_token);
                Ok(pb::ListTopicsResponse { topics: page.items, next_page_token: page.next })
            })
            .await
        }
        "ListTopicSubscriptions" => {
            unary(request, |r: pb::ListTopicSubscriptionsRequest| async move {
                let page = broker.topic_subscriptions(&r.topic, r.page_size, &r.page_token)?;
                Ok(pb::ListTopicSubscriptionsResponse {
                    subscriptions: page.items,
                    next_page_token: page.next,
                })
            })
            .await
        }
        "ListTopicSnapshots" => {
            unary(request, |r: pb::ListTopicSnapshotsRequest| async move {
                let page = broker.topic_snapshots(&r.topic, r.page_size, &r.page_token)?;
                Ok(pb::ListTopicSnapshotsResponse { snapshots: page.items, next_page_token: page.next })
            })
            .await
        }
        "DetachSubscription" => {
            unary(request, |r: pb::DetachSubscriptionRequest| async move {
                broker.detach_subscription(&r.subscription)?;
                Ok(pb::DetachSubscriptionResponse {})
            })
            .await
        }
        _ => unimplemented(method),
    }
}

/// The paths of a field mask.
pub(super) fn mask(mask: Option<prost_types::FieldMask>) -> Vec<String> {
    mask.map(|mask| mask.paths).unwrap_or_default()
}

/// A required nested message.
pub(super) fn named<T>(value: Option<T>, field: &str) -> Result<T, Status> {
    value.ok_or_else(|| Status::invalid_argument(format!("{field}: missing")))
}
