//! Publishing: order, confirmation, outage, refusal, size (field cases 5, 57, 59).

use crate::support::{Setup, drain, numbered, outgoing};
use anyhow::Result;
use backline_broker::{Broker, BrokerConfig, FlowLimits, PublishError};
use backline_pubsub_emulator::{FaultPlan, PublishFault, PublishMode};
use std::collections::HashSet;
use std::time::Duration;

const LIMITS: FlowLimits = FlowLimits { messages: 2000, bytes: 100_000_000 };

fn fail(mode: PublishMode, code: &str, times: u64, key: Option<&str>) -> FaultPlan {
    let fault = PublishFault {
        mode,
        code: code.to_owned(),
        times: Some(times),
        topic: None,
        ordering_key: key.map(str::to_owned),
    };
    FaultPlan { publish: vec![fault], ..FaultPlan::default() }
}

#[tokio::test]
async fn a_batch_larger_than_a_request_is_confirmed_and_stays_in_order() -> Result<()> {
    let setup = Setup::new().await?;
    let answers = setup.broker.publish_batch("events", Some("lane-07"), &numbered(0..1500)).await;
    let ids = answers.into_iter().collect::<Result<HashSet<_>, _>>()?;
    assert_eq!(ids.len(), 1500);
    let mut subscription = setup.broker.subscribe("reader", LIMITS);
    let wanted: Vec<String> = (0..1500).map(|n| n.to_string()).collect();
    assert_eq!(drain(&mut subscription, 1500).await?, wanted);
    Ok(())
}

#[tokio::test]
async fn a_key_that_failed_resumes_from_the_failed_entry_and_others_never_notice() -> Result<()> {
    let setup = Setup::new().await?;
    setup.emulator.set_faults(fail(PublishMode::Refuse, "UNAVAILABLE", 1, Some("K")))?;
    let (of_k, of_l) = (numbered(0..5), numbered(10..15));
    let (k, l) = tokio::join!(
        setup.broker.publish_batch("events", Some("K"), &of_k),
        setup.broker.publish_batch("events", Some("L"), &of_l),
    );
    assert!(k.iter().all(|answer| matches!(answer, Err(PublishError::Outage { .. }))), "{k:?}");
    assert!(l.iter().all(Result::is_ok), "{l:?}");
    let again = setup.broker.publish_batch("events", Some("K"), &numbered(0..5)).await;
    assert!(again.iter().all(Result::is_ok), "{again:?}");

    let mut subscription = setup.broker.subscribe("reader", LIMITS);
    let texts = drain(&mut subscription, 10).await?;
    let of_k: Vec<_> = texts.iter().filter(|text| text.len() == 1).collect();
    assert_eq!(of_k, ["0", "1", "2", "3", "4"]);
    Ok(())
}

#[tokio::test]
async fn an_outage_stops_the_rest_of_the_batch() -> Result<()> {
    let setup = Setup::new().await?;
    setup.emulator.set_faults(fail(PublishMode::Refuse, "UNAVAILABLE", 1, None))?;
    let answers = setup.broker.publish_batch("events", Some("K"), &numbered(0..1001)).await;
    assert!(matches!(answers[999], Err(PublishError::Outage { .. })));
    assert!(matches!(answers[1000], Err(PublishError::NotSent)));
    Ok(())
}

#[tokio::test]
async fn a_lost_confirmation_is_an_outage_and_the_repeat_is_a_second_publication() -> Result<()> {
    let setup = Setup::new().await?;
    setup.emulator.set_faults(fail(PublishMode::AcceptThenFail, "UNAVAILABLE", 1, None))?;
    for wanted in [false, true] {
        let answers = setup.broker.publish_batch("events", Some("K"), &numbered(0..1)).await;
        assert_eq!(answers[0].is_ok(), wanted, "{answers:?}");
    }
    let mut subscription = setup.broker.subscribe("reader", LIMITS);
    assert_eq!(drain(&mut subscription, 2).await?, ["0", "0"]);
    Ok(())
}

#[tokio::test]
async fn a_refused_entry_is_found_by_halving_and_its_neighbors_go_out() -> Result<()> {
    let setup = Setup::new().await?;
    // Refused: the batch of four, its first half, and the first entry alone.
    setup.emulator.set_faults(fail(PublishMode::Refuse, "INVALID_ARGUMENT", 3, None))?;
    let answers = setup.broker.publish_batch("events", Some("K"), &numbered(0..4)).await;
    assert!(matches!(answers[0], Err(PublishError::Refused { .. })), "{answers:?}");
    assert!(answers[1..].iter().all(Result::is_ok), "{answers:?}");
    Ok(())
}

#[tokio::test]
async fn a_missing_topic_blames_no_entry() -> Result<()> {
    let setup = Setup::empty().await?;
    let answers = setup.broker.publish_batch("none", Some("K"), &numbered(0..2)).await;
    assert!(matches!(answers[0], Err(PublishError::Outage { .. })), "{answers:?}");
    Ok(())
}

#[tokio::test]
async fn large_entries_are_split_over_requests_and_a_giant_is_refused_alone() -> Result<()> {
    let setup = Setup::new().await?;
    let mut batch: Vec<_> = (0..12).map(|_| outgoing(vec![b'x'; 900_000])).collect();
    let mut wide = outgoing("wide");
    wide.attributes = (0..100).map(|n| (format!("a{n}"), "v".repeat(1024))).collect();
    batch.push(wide);
    batch.insert(3, outgoing(vec![b'x'; 10_500_000]));
    let answers = setup.broker.publish_batch("events", Some("K"), &batch).await;
    for (at, answer) in answers.iter().enumerate() {
        assert_eq!(answer.is_ok(), at != 3, "entry {at}: {answer:?}");
    }
    assert!(matches!(answers[3], Err(PublishError::Refused { .. })));
    Ok(())
}

#[tokio::test]
async fn without_a_key_everything_is_confirmed_too() -> Result<()> {
    let setup = Setup::new().await?;
    let answers = setup.broker.publish_batch("events", None, &numbered(0..2500)).await;
    assert!(answers.iter().all(Result::is_ok));
    Ok(())
}

#[tokio::test]
async fn a_broker_that_never_answers_is_given_up_within_the_time_limit() -> Result<()> {
    // Accepts connections, by the kernel alone, and says nothing.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let mut config = BrokerConfig::new("project", Some(silent.local_addr()?.to_string()));
    config.publish_timeout = Duration::from_millis(500);
    let broker = Broker::connect(config).await?;
    let publish = async { broker.publish_batch("events", Some("K"), &numbered(0..3)).await };
    let answers = tokio::time::timeout(Duration::from_secs(3), publish).await?;
    assert!(matches!(answers[0], Err(PublishError::Outage { .. })), "{answers:?}");
    Ok(())
}
