//! What Google's Rust client does not show: raw streams, confirmations, error details, refusals.

use crate::fixture::{Fixture, message, next, subscription, topic};
use anyhow::{Context, Result};
use backline_pubsub_emulator::{DeadLetterFault, FaultPlan, StreamFault};
use google_cloud_pubsub::model::DeadLetterPolicy;
use googleapis_tonic_google_pubsub_v1::google::pubsub::v1 as pb;
use pb::publisher_client::PublisherClient;
use pb::subscriber_client::SubscriberClient;
use tokio::sync::mpsc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status, Streaming};
use tonic_types::StatusExt;

async fn channel(fixture: &Fixture) -> Result<Channel> {
    Ok(Endpoint::from_shared(fixture.emulator.endpoint())?.connect().await?)
}

/// A raw streaming pull.
struct Raw {
    frames: mpsc::Sender<pb::StreamingPullRequest>,
    responses: Streaming<pb::StreamingPullResponse>,
}

impl Raw {
    async fn open(client: &mut SubscriberClient<Channel>, name: &str) -> Result<Self> {
        let (frames, outbound) = mpsc::channel(16);
        let first = pb::StreamingPullRequest {
            subscription: subscription(name),
            stream_ack_deadline_seconds: 10,
            ..Default::default()
        };
        frames.send(first).await?;
        let outbound = tokio_stream::wrappers::ReceiverStream::new(outbound);
        Ok(Self { frames, responses: client.streaming_pull(outbound).await?.into_inner() })
    }

    /// The first response that `wanted` finds something in, or how the stream ended.
    async fn until<T>(
        &mut self,
        wanted: impl Fn(pb::StreamingPullResponse) -> Option<T>,
    ) -> Result<Option<T>, Status> {
        while let Some(response) = self.responses.message().await? {
            if let Some(found) = wanted(response) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

#[tokio::test]
async fn streams_end_as_told() -> Result<()> {
    let fixture = Fixture::start().await?;
    fixture.setup("end", |s| s).await?;
    let mut client = SubscriberClient::new(channel(&fixture).await?);
    let codes = [
        ("CANCELLED", Some(Code::Cancelled)),
        ("UNAVAILABLE", Some(Code::Unavailable)),
        ("INTERNAL", Some(Code::Internal)),
        ("RESET", Some(Code::Internal)),
        ("EOF", None),
    ];
    for (end, wanted) in codes {
        let mut raw = Raw::open(&mut client, "end").await?;
        raw.until(|r| r.subscription_properties).await?;
        let rule = StreamFault { end: end.into(), times: Some(1), after_messages: 0, subscription: None };
        fixture.emulator.set_faults(FaultPlan { streams: vec![rule], ..FaultPlan::default() })?;
        let ended = raw.until(|_| None::<()>).await;
        assert_eq!(ended.err().map(|status| status.code()), wanted, "{end}");
    }
    assert_eq!(fixture.emulator.fault_fired("streams_ended"), 5);
    Ok(())
}

#[tokio::test]
async fn exactly_once_results_on_streams_and_unary_calls() -> Result<()> {
    let fixture = Fixture::start().await?;
    fixture
        .setup("eod", |s| s.set_enable_exactly_once_delivery(true).set_enable_message_ordering(true))
        .await?;
    let publisher = fixture.publisher("eod").await?;
    for data in ["1", "2", "3"] {
        publisher.publish(message(data).set_ordering_key("k")).await?;
    }
    let mut client = SubscriberClient::new(channel(&fixture).await?);
    let mut raw = Raw::open(&mut client, "eod").await?;
    let got = raw.until(|r| (r.received_messages.len() == 3).then_some(r)).await?.context("stream ended")?;
    assert!(got.subscription_properties.context("no properties")?.exactly_once_delivery_enabled);
    let ids: Vec<String> = got.received_messages.into_iter().map(|m| m.ack_id).collect();

    let ack = |ack_ids| pb::StreamingPullRequest { ack_ids, ..Default::default() };
    raw.frames.send(ack(vec![ids[1].clone()])).await?;
    let confirmed = raw.until(|r| r.acknowledge_confirmation).await?.context("stream ended")?;
    assert_eq!(confirmed.unordered_ack_ids, [ids[1].clone()]);
    raw.frames.send(ack(ids[..2].to_vec())).await?;
    let confirmed = raw.until(|r| r.acknowledge_confirmation).await?.context("stream ended")?;
    assert_eq!(confirmed.ack_ids, ids[..2]);

    let stale = "1-ffff-1".to_owned();
    let request = pb::AcknowledgeRequest {
        subscription: subscription("eod"),
        ack_ids: vec![ids[1].clone(), ids[2].clone(), stale.clone()],
    };
    let refused = client.acknowledge(request).await.err().context("accepted")?;
    let info = refused.get_error_details().error_info().cloned().context("no details")?;
    assert_eq!(
        info.metadata.into_iter().collect::<Vec<_>>(),
        [(stale, "PERMANENT_FAILURE_INVALID_ACK_ID".to_owned())]
    );
    fixture.drained("eod").await
}

#[tokio::test]
async fn bad_frames_abort_the_stream() -> Result<()> {
    let fixture = Fixture::start().await?;
    fixture.setup("bad", |s| s).await?;
    let mut client = SubscriberClient::new(channel(&fixture).await?);
    let frames = [
        pb::StreamingPullRequest { max_outstanding_messages: 5, ..Default::default() },
        pb::StreamingPullRequest { ack_ids: vec!["nonsense".into()], ..Default::default() },
        pb::StreamingPullRequest { modify_deadline_seconds: vec![10], ..Default::default() },
        pb::StreamingPullRequest { stream_ack_deadline_seconds: 5, ..Default::default() },
    ];
    for frame in frames {
        let mut raw = Raw::open(&mut client, "bad").await?;
        raw.frames.send(frame).await?;
        let ended = raw.until(|_| None::<()>).await;
        assert_eq!(ended.err().map(|status| status.code()), Some(Code::InvalidArgument));
    }
    Ok(())
}

#[tokio::test]
async fn too_large_publishes_are_refused() -> Result<()> {
    let fixture = Fixture::start().await?;
    fixture.setup("big", |s| s).await?;
    let mut client = PublisherClient::new(channel(&fixture).await?);
    let sized = |bytes: usize| pb::PubsubMessage { data: vec![0; bytes].into(), ..Default::default() };
    for messages in [vec![sized(10_500_000)], vec![sized(1_200_000); 9], vec![sized(1); 1001]] {
        let refused = client.publish(pb::PublishRequest { topic: topic("big"), messages }).await;
        assert_eq!(refused.err().map(|status| status.code()), Some(Code::InvalidArgument));
    }
    let messages = vec![sized(1_000_000); 9];
    client.publish(pb::PublishRequest { topic: topic("big"), messages }).await?;
    Ok(())
}

#[tokio::test]
async fn dead_letters_early_and_twice() -> Result<()> {
    let fixture = Fixture::start().await?;
    fixture.setup("dead", |s| s).await?;
    let policy = DeadLetterPolicy::new().set_dead_letter_topic(topic("dead"));
    fixture.setup("dlq", |s| s.set_dead_letter_policy(policy)).await?;
    let dead_letter = Some(DeadLetterFault { shift: -4, copies: 2 });
    fixture.emulator.set_faults(FaultPlan { dead_letter, ..FaultPlan::default() })?;
    fixture.publish("dlq", message("n")).await?;
    next(&mut fixture.stream("dlq")).await?.1.nack();
    let mut stream = fixture.stream("dead");
    let (first, one) = next(&mut stream).await?;
    let (second, two) = next(&mut stream).await?;
    assert_ne!(first.message_id, second.message_id);
    one.ack();
    two.ack();
    fixture.drained("dlq").await?;
    assert_eq!(fixture.emulator.fault_fired("dead_letter_shifted"), 1);
    assert_eq!(fixture.emulator.fault_fired("dead_letter_copied"), 1);
    Ok(())
}
