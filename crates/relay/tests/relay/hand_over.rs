//! Confirmed progress, ambiguity, poison, outage (obligation D3; reliability R2 to R7; field cases 3, 5, 7, 9).

use crate::support::{PARKED, PUBLISHED, SOON, Setup, WAITING, drain, next};
use anyhow::Result;
use backline_envelope::Envelope;
use backline_pubsub_emulator::{FaultPlan, PublishFault, PublishMode};
use backline_relay::RelayEnd;
use sqlx::PgPool;
use std::collections::{BTreeMap, HashSet};
use std::time::Duration;
use tokio::time::Instant;

fn fail(mode: PublishMode, code: &str, times: Option<u64>, topic: Option<&str>) -> FaultPlan {
    let fault = PublishFault {
        mode,
        code: code.to_owned(),
        times,
        topic: topic.map(|topic| format!("projects/project/topics/{topic}")),
        ordering_key: None,
    };
    FaultPlan { publish: vec![fault], ..FaultPlan::default() }
}

/// Waits until the broker has refused `n` requests.
async fn requests(setup: &Setup, n: u64) -> Result<()> {
    let limit = Instant::now() + SOON;
    while setup.emulator.fault_fired("publish_refused") < n {
        anyhow::ensure!(Instant::now() < limit, "{} requests", setup.emulator.fault_fired("publish_refused"));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn what_was_committed_arrives_once_confirmed_with_its_bytes(pool: PgPool) -> Result<()> {
    let setup = Setup::new(&pool).await?;
    let relay = setup.start(Setup::config())?;
    let ids = setup.emit_many(700).await?;
    let mut reader = setup.read();
    let got: BTreeMap<_, _> = drain(&mut reader, 700).await?.into_iter().collect();
    assert_eq!(got.keys().copied().collect::<HashSet<_>>(), ids.into_iter().collect());
    assert!(got.values().all(|data| &data[..] == b"{\"n\": 1.10}"));
    setup.settles(WAITING, 0).await?;
    assert_eq!(setup.count(PUBLISHED).await?, 700);
    assert_eq!(relay.stop().await?, RelayEnd::Clean);
    let held = "select count(*) from backline.outbox_lane where until > clock_timestamp()";
    assert_eq!(setup.count(held).await?, 0);
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn a_delivery_is_an_envelope(pool: PgPool) -> Result<()> {
    let setup = Setup::new(&pool).await?;
    let relay = setup.start(Setup::config())?;
    let event = setup.event("x", "{\"ok\": true}")?.at_version(3);
    let id = setup.emit(&[event]).await?[0];
    let delivery = next(&mut setup.read()).await?;
    let envelope = Envelope::from_attributes(&delivery.attributes, &delivery.data)?;
    assert_eq!((envelope.id, envelope.correlation_id, envelope.aggregate_version), (id, id, Some(3)));
    assert!(delivery.ordering_key.starts_with("lane-"));
    relay.stop().await?;
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn an_entry_whose_confirmation_was_lost_is_repeated_with_the_same_id_and_bytes(
    pool: PgPool,
) -> Result<()> {
    let setup = Setup::new(&pool).await?;
    setup.emulator.set_faults(fail(PublishMode::AcceptThenFail, "UNAVAILABLE", Some(1), None))?;
    let id = setup.emit_many(1).await?[0];
    let relay = setup.start(Setup::config())?;
    let got = drain(&mut setup.read(), 2).await?;
    assert_eq!(got[0], got[1]);
    assert_eq!(got[0].0, id);
    setup.settles(PUBLISHED, 1).await?;
    relay.stop().await?;
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn nothing_is_recorded_that_the_broker_did_not_confirm(pool: PgPool) -> Result<()> {
    let setup = Setup::new(&pool).await?;
    setup.emulator.set_faults(fail(PublishMode::Refuse, "UNAVAILABLE", None, None))?;
    setup.emit_many(20).await?;
    let relay = setup.start(Setup::config())?;
    requests(&setup, 3).await?;
    assert_eq!((setup.count(WAITING).await?, setup.count(PUBLISHED).await?), (20, 0));
    relay.stop().await?;
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn an_outage_parks_nothing_slows_down_and_ends_by_itself(pool: PgPool) -> Result<()> {
    let setup = Setup::new(&pool).await?;
    setup.emulator.set_faults(fail(PublishMode::Refuse, "UNAVAILABLE", None, None))?;
    setup.emit_many(50).await?;
    let relay = setup.start(Setup::config())?;
    // At most eight lanes are under way when it begins; then one probe after 0.1, 0.2, 0.4 and 0.8 s, less jitter.
    let began = tokio::time::Instant::now();
    requests(&setup, 12).await?;
    assert!(began.elapsed() > Duration::from_secs(1), "12 requests in {:?}", began.elapsed());
    assert_eq!(setup.count(PARKED).await?, 0);
    setup.emulator.set_faults(FaultPlan::default())?;
    setup.settles(PUBLISHED, 50).await?;
    let failures = "select coalesce(max(failures), 0)::bigint from backline.outbox_published";
    assert_eq!(setup.count(failures).await?, 0);
    relay.stop().await?;
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn a_topic_that_is_missing_holds_up_no_other_topic(pool: PgPool) -> Result<()> {
    let setup = Setup::new(&pool).await?;
    let mut lost = setup.event("same", "{}")?;
    lost.topic = Some("missing-topic".to_owned());
    setup.emit(&[lost, setup.event("same", "{}")?]).await?;
    let relay = setup.start(Setup::config())?;
    setup.settles(PUBLISHED, 1).await?;
    assert_eq!((setup.count(WAITING).await?, setup.count(PARKED).await?), (1, 0));
    setup.broker.ensure_topic("missing-topic").await?;
    setup.settles(PUBLISHED, 2).await?;
    relay.stop().await?;
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn poison_is_parked_with_its_reason_while_its_neighbors_flow(pool: PgPool) -> Result<()> {
    let setup = Setup::new(&pool).await?;
    let giant = format!("\"{}\"", "x".repeat(8_900_000));
    let ids =
        setup.emit(&[setup.event("p", &giant)?, setup.event("p", "1")?, setup.event("p", "2")?]).await?;
    // The functions would refuse it; an entry from before a tighter limit would not have met them.
    sqlx::query("update backline.outbox set payload = to_jsonb(repeat('x', 10500000)) where id = $1")
        .bind(ids[0])
        .execute(&setup.pool)
        .await?;
    let relay = setup.start(Setup::config())?;
    let got = drain(&mut setup.read(), 2).await?;
    assert_eq!([got[0].0, got[1].0], ids[1..]);
    setup.settles(PARKED, 1).await?;
    let reason: String = sqlx::query_scalar("select parked_reason from backline.outbox where id = $1")
        .bind(ids[0])
        .fetch_one(&setup.pool)
        .await?;
    assert!(reason.contains("over the limit"), "{reason}");
    relay.stop().await?;
    Ok(())
}
