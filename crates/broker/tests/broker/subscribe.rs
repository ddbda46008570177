//! Subscribing: reconnects, limits, settling (field cases 51, 53, 55, 63).

use crate::support::{SOON, Setup, drain, next, numbered, spec};
use anyhow::{Context, Result};
use backline_broker::{Connection, FlowLimits};
use backline_pubsub_emulator::{Config, DropAcks, FaultPlan, StreamFault};
use std::collections::HashSet;
use std::time::Duration;

const LIMITS: FlowLimits = FlowLimits { messages: 100, bytes: 100_000_000 };

fn end(code: &str, times: u64, after_messages: u64) -> StreamFault {
    StreamFault { end: code.to_owned(), times: Some(times), after_messages, subscription: None }
}

#[tokio::test]
async fn a_subscription_survives_every_way_a_stream_ends() -> Result<()> {
    let setup = Setup::new().await?;
    let streams = ["CANCELLED", "UNAVAILABLE", "INTERNAL", "EOF", "UNKNOWN"];
    let streams = streams.map(|code| end(code, 2, 3)).into();
    setup.emulator.set_faults(FaultPlan { streams, ..FaultPlan::default() })?;
    let answers = setup.broker.publish_batch("events", None, &numbered(0..200)).await;
    assert!(answers.iter().all(Result::is_ok));

    let mut subscription = setup.broker.subscribe("reader", LIMITS);
    let mut seen = HashSet::new();
    while seen.len() < 200 {
        let delivery = next(&mut subscription).await?;
        seen.insert(delivery.data.clone());
        delivery.ack();
    }
    let mut connected = subscription.connected();
    let up = connected.wait_for(|state| *state == Connection::Up);
    tokio::time::timeout(SOON, up).await.context("still not up")??;
    Ok(())
}

#[tokio::test]
async fn a_missing_subscription_shows_and_is_read_once_it_exists() -> Result<()> {
    let setup = Setup::empty().await?;
    let mut subscription = setup.broker.subscribe("reader", LIMITS);
    let mut connected = subscription.connected();
    let down = connected.wait_for(|state| matches!(state, Connection::Down { .. }));
    tokio::time::timeout(SOON, down).await.context("still not down")??;

    setup.broker.ensure_topic("events").await?;
    setup.broker.ensure_subscription(&spec("reader")).await?;
    let up = connected.wait_for(|state| *state == Connection::Up);
    tokio::time::timeout(SOON, up).await.context("still not up")??;
    setup.broker.publish_batch("events", None, &numbered(0..3)).await;
    drain(&mut subscription, 3).await?;
    Ok(())
}

#[tokio::test]
async fn an_idle_subscription_becomes_ready() -> Result<()> {
    let setup = Setup::new().await?;
    let subscription = setup.broker.subscribe("reader", LIMITS);
    let mut connected = subscription.connected();
    let up = connected.wait_for(|state| *state == Connection::Up);
    tokio::time::timeout(SOON, up).await.context("still not up")??;
    Ok(())
}

#[tokio::test]
async fn no_more_than_the_limit_is_in_flight_over_reconnects() -> Result<()> {
    let setup = Setup::new().await?;
    let streams = vec![end("CANCELLED", 1, 3)];
    setup.emulator.set_faults(FaultPlan { streams, ..FaultPlan::default() })?;
    setup.broker.publish_batch("events", None, &numbered(0..3)).await;
    let mut subscription = setup.broker.subscribe("reader", FlowLimits { messages: 5, bytes: 1_000_000 });
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(next(&mut subscription).await?);
    }
    // Those three are open when their stream ends, and the next one has room for two.
    setup.broker.publish_batch("events", None, &numbered(3..50)).await;
    for _ in 3..5 {
        held.push(next(&mut subscription).await?);
    }
    let more = tokio::time::timeout(Duration::from_millis(700), subscription.recv()).await;
    assert!(more.is_err(), "a sixth delivery came while five were open");
    held.into_iter().for_each(backline_broker::Delivery::ack);
    next(&mut subscription).await?.ack();
    Ok(())
}

/// Field case 53: <https://github.com/googleapis/java-pubsub/issues/2480>. A limit per stream multiplies with each stream
/// that is replaced while its deliveries are still open, and deadlines that pass must not use it up for good.
#[tokio::test]
async fn the_limit_counts_over_eight_streams_and_survives_a_hundred_expired_deadlines() -> Result<()> {
    // Less than the limit at a time, so that a stream ends while all it carried is open, and the next one has room.
    const TOGETHER: u32 = 60;
    // Enough for eight streams, each of which ends after 60 messages and the rest of an answer of up to 100.
    const MESSAGES: u32 = 1_200;
    const HANDLING: Duration = Duration::from_millis(200);
    let cap = Some(Duration::from_secs(1));
    let setup =
        Setup::on(Config { ack_deadline_cap: cap, retry_backoff_cap: cap, ..Config::default() }).await?;
    setup.emulator.set_faults(FaultPlan {
        streams: vec![end("CANCELLED", 8, u64::from(TOGETHER))],
        drop_acks: Some(DropAcks { every: 4, subscription: None }),
        ..FaultPlan::default()
    })?;
    let mut subscription = setup.broker.subscribe("reader", LIMITS);
    let mut published = 0;
    let (mut open, mut most, mut repeated, mut seen) = (Vec::new(), 0, 0_usize, HashSet::new());
    // A message comes again when the deadline of its lost acknowledgement has passed.
    while repeated < 100 || seen.len() < MESSAGES as usize {
        match tokio::time::timeout(HANDLING, subscription.recv()).await {
            Ok(delivery) => {
                let delivery = delivery.context("ended")?;
                repeated += usize::from(!seen.insert(delivery.data.clone()));
                open.push(delivery);
                most = most.max(open.len());
            }
            Err(_) if published < MESSAGES && seen.len() == published as usize => {
                let more = numbered(published..published + TOGETHER);
                let answers = setup.broker.publish_batch("events", None, &more).await;
                assert!(answers.iter().all(Result::is_ok));
                published += TOGETHER;
            }
            Err(_) => open.drain(..).for_each(backline_broker::Delivery::ack),
        }
    }
    assert_eq!(most, LIMITS.messages as usize, "in flight at once, over all streams");
    assert_eq!(setup.emulator.fault_fired("streams_ended"), 8);
    assert!(setup.emulator.fault_fired("acks_dropped") >= 100);
    Ok(())
}

#[tokio::test]
async fn what_is_given_back_or_dropped_comes_again() -> Result<()> {
    let setup = Setup::new().await?;
    setup.broker.publish_batch("events", None, &numbered(0..1)).await;
    let mut subscription = setup.broker.subscribe("reader", LIMITS);
    next(&mut subscription).await?.nack();
    drop(next(&mut subscription).await?);
    let last = next(&mut subscription).await?;
    assert_eq!(&last.data[..], b"0");
    last.ack();
    assert!(subscription.close(SOON).await);
    Ok(())
}

#[tokio::test]
async fn closing_waits_for_open_deliveries_and_returns_the_rest() -> Result<()> {
    let setup = Setup::new().await?;
    setup.broker.publish_batch("events", None, &numbered(0..10)).await;
    let mut subscription = setup.broker.subscribe("reader", LIMITS);
    let open = next(&mut subscription).await?;
    let closing = tokio::spawn(subscription.close(SOON));
    open.ack();
    assert!(closing.await?);

    let mut again = setup.broker.subscribe("reader", LIMITS);
    let rest: HashSet<_> = drain(&mut again, 9).await?.into_iter().collect();
    assert_eq!(rest.len(), 9);
    assert!(!rest.contains("0"), "the acknowledged delivery came again");
    Ok(())
}

#[tokio::test]
async fn closing_gives_up_on_a_delivery_that_is_never_settled() -> Result<()> {
    let setup = Setup::new().await?;
    setup.broker.publish_batch("events", None, &numbered(0..1)).await;
    let mut subscription = setup.broker.subscribe("reader", LIMITS);
    let open = next(&mut subscription).await?;
    assert!(!subscription.close(Duration::from_millis(200)).await);
    drop(open);
    Ok(())
}
