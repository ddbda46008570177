//! Measures publish and delivery over the wire: `throughput ENDPOINT [MESSAGES] [BATCH] [BYTES]`.

use anyhow::{Context, Result};
use googleapis_tonic_google_pubsub_v1::google::pubsub::v1 as pb;
use pb::publisher_client::PublisherClient;
use pb::subscriber_client::SubscriberClient;
use std::time::{Duration, Instant};
use tonic::transport::Endpoint;

const TOPIC: &str = "projects/bench/topics/throughput";
const SUBSCRIPTION: &str = "projects/bench/subscriptions/throughput";
/// Publish requests in flight.
const PUBLISHERS: usize = 4;

#[tokio::main]
async fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let endpoint = Endpoint::from_shared(args.next().context("usage: throughput ENDPOINT")?)?;
    let mut number = |default: usize| args.next().map_or(Ok(default), |text| text.parse());
    let (messages, batch, bytes) = (number(400_000)?, number(500)?, number(300)?);
    let channel = endpoint.connect().await?;
    let mut publisher = PublisherClient::new(channel.clone());
    let mut subscriber = SubscriberClient::new(channel);
    // Left over from an earlier run, or not there: both are fine.
    let _ = subscriber
        .delete_subscription(pb::DeleteSubscriptionRequest { subscription: SUBSCRIPTION.into() })
        .await;
    let _ = publisher.create_topic(pb::Topic { name: TOPIC.into(), ..Default::default() }).await;
    let wanted = pb::Subscription { name: SUBSCRIPTION.into(), topic: TOPIC.into(), ..Default::default() };
    subscriber.create_subscription(wanted).await?;

    let begun = Instant::now();
    let receiver = tokio::spawn(receive(subscriber, messages));
    let mut publishers = Vec::new();
    for _ in 0..PUBLISHERS {
        let channel = endpoint.connect().await?;
        publishers.push(tokio::spawn(publish(channel, messages / PUBLISHERS / batch, batch, bytes)));
    }
    for publisher in publishers {
        publisher.await??;
    }
    report("published", messages, begun.elapsed());
    receiver.await??;
    report("received and acknowledged", messages, begun.elapsed());
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "a rate for people to read")]
fn report(what: &str, messages: usize, took: Duration) {
    println!("{what}: {messages} in {took:.2?}, {:.0}/s", messages as f64 / took.as_secs_f64());
}

async fn publish(
    channel: tonic::transport::Channel,
    requests: usize,
    batch: usize,
    bytes: usize,
) -> Result<()> {
    let mut publisher = PublisherClient::new(channel);
    let message = pb::PubsubMessage {
        data: vec![b'x'; bytes].into(),
        attributes: ["event_id", "event_type", "organization", "project"]
            .map(|key| (key.to_owned(), "0197a9c0-1111-7222-8333-444455556666".to_owned()))
            .into(),
        ..Default::default()
    };
    for _ in 0..requests {
        let messages = vec![message.clone(); batch];
        publisher.publish(pb::PublishRequest { topic: TOPIC.into(), messages }).await?;
    }
    Ok(())
}

async fn receive(mut subscriber: SubscriberClient<tonic::transport::Channel>, messages: usize) -> Result<()> {
    let (frames, outbound) = tokio::sync::mpsc::channel(64);
    frames
        .send(pb::StreamingPullRequest {
            subscription: SUBSCRIPTION.into(),
            stream_ack_deadline_seconds: 60,
            max_outstanding_messages: 10_000,
            ..Default::default()
        })
        .await?;
    let outbound = tokio_stream::wrappers::ReceiverStream::new(outbound);
    let mut inbound = subscriber.streaming_pull(outbound).await?.into_inner();
    let mut seen = 0;
    while seen < messages {
        let response = inbound.message().await?.context("stream ended")?;
        let ack_ids: Vec<String> = response.received_messages.into_iter().map(|m| m.ack_id).collect();
        if ack_ids.is_empty() {
            continue;
        }
        seen += ack_ids.len();
        frames.send(pb::StreamingPullRequest { ack_ids, ..Default::default() }).await?;
    }
    Ok(())
}
