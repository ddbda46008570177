//! Order, late commits, fences (obligations D8, D9; reliability R8, R9; field case 1).

#![expect(
    clippy::disallowed_methods,
    reason = "late commits are the subject: these tests hold transactions open"
)]

use crate::support::{PUBLISHED, SOON, Setup, WAITING, drain, next};
use anyhow::Result;
use backline_outbox::drain::{Confirmed, DrainError, mark_published, take_lanes};
use sqlx::PgPool;
use std::collections::HashMap;
use std::time::Duration;

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn events_of_an_aggregate_arrive_in_version_order(pool: PgPool) -> Result<()> {
    let setup = Setup::new(&pool).await?;
    // Inserted in the wrong order inside one transaction, as two code paths of one request would.
    let events = [2, 1, 4, 3].map(|v| Ok(setup.event("a", &v.to_string())?.at_version(v)));
    let events = events.into_iter().collect::<Result<Vec<_>>>()?;
    setup.emit(&events).await?;
    let relay = setup.start(Setup::config())?;
    let got = drain(&mut setup.read(), 4).await?;
    assert_eq!(got.iter().map(|(_, data)| &data[..]).collect::<Vec<_>>(), [b"1", b"2", b"3", b"4"]);
    relay.stop().await?;
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn every_lane_keeps_insertion_order_over_many_batches(pool: PgPool) -> Result<()> {
    let setup = Setup::new(&pool).await?;
    for round in 0..10 {
        let events = (0..200).map(|n| setup.event(&format!("a{}", n % 20), &(round * 200 + n).to_string()));
        setup.emit(&events.collect::<Result<Vec<_>>>()?).await?;
    }
    let mut config = Setup::config();
    (config.batch_rows, config.batches_per_hold) = (7, 2);
    let (one, two) = (setup.start(config.clone())?, setup.start(config)?);
    let mut last: HashMap<String, i64> = HashMap::new();
    let mut reader = setup.read();
    for _ in 0..2000 {
        let delivery = next(&mut reader).await?;
        let (n, aggregate) =
            (String::from_utf8_lossy(&delivery.data).parse()?, &delivery.attributes["ce-aggregateid"]);
        let before = last.insert(aggregate.clone(), n);
        assert!(before.is_none_or(|before| before < n), "{aggregate}: {before:?} before {n}");
        delivery.ack();
    }
    setup.settles(PUBLISHED, 2000).await?;
    one.stop().await?;
    two.stop().await?;
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn what_commits_late_is_published_although_higher_numbers_went_before(pool: PgPool) -> Result<()> {
    let setup = Setup::new(&pool).await?;
    let relay = setup.start(Setup::config())?;
    let mut reader = setup.read();
    // Longer than the declared commit lag of 2 s, so that the mark has passed the late entry's number.
    let mut late = setup.pool.begin().await?;
    let late_id = backline_outbox::append(&mut late, &setup.event("same", "\"late\"")?).await?;
    let mark = "select max(mark_seq) from backline.outbox_lane";
    let deadline = tokio::time::Instant::now() + SOON;
    while setup.count(mark).await? < 2 {
        anyhow::ensure!(tokio::time::Instant::now() < deadline, "the mark never moved");
        setup.emit(&[setup.event("same", "\"early\"")?]).await?;
        drain(&mut reader, 1).await?;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    late.commit().await?;
    let got = drain(&mut reader, 1).await?;
    assert_eq!(got[0].0, late_id);
    setup.settles(WAITING, 0).await?;
    relay.stop().await?;
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn writers_that_commit_in_any_order_lose_nothing(pool: PgPool) -> Result<()> {
    let setup = Setup::new(&pool).await?;
    let relay = setup.start(Setup::config())?;
    let writers = sqlx::PgPool::connect_with((*setup.pool.connect_options()).clone()).await?;
    for round in 0..25 {
        let mut open = Vec::new();
        for writer in 0..8 {
            let mut tx = writers.begin().await?;
            backline_outbox::append(&mut tx, &setup.event(&format!("a{writer}"), "1")?).await?;
            open.push(tx);
        }
        // Numbers were taken in one order and become visible in another.
        open.rotate_left(round % 8);
        if round % 2 == 0 {
            open.reverse();
        }
        for tx in open {
            tx.commit().await?;
        }
    }
    setup.settles(PUBLISHED, 200).await?;
    assert_eq!(setup.count(WAITING).await?, 0);
    relay.stop().await?;
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn a_holder_whose_lane_was_taken_records_nothing(pool: PgPool) -> Result<()> {
    let setup = Setup::new(&pool).await?;
    let events = [setup.event("a", "1")?];
    setup.emit(&events).await?;
    let short = Duration::from_millis(1);
    let first = take_lanes(&setup.pool, 64, "first", short, &[]).await?;
    let second = loop {
        let second = take_lanes(&setup.pool, 64, "second", SOON, &[]).await?;
        if !second.is_empty() {
            break second;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(first[0].hold.lane, second[0].hold.lane);
    assert!(second[0].hold.token > first[0].hold.token);
    let seq: i64 = sqlx::query_scalar("select seq from backline.outbox").fetch_one(&setup.pool).await?;
    let confirmed = [Confirmed { seq, message_id: "1".to_owned() }];
    let stale = mark_published(&setup.pool, first[0].hold, &confirmed, SOON).await;
    assert!(matches!(stale, Err(DrainError::Fenced)), "{stale:?}");
    assert_eq!(setup.count(WAITING).await?, 1);
    // The same mark twice, as after a lost COMMIT reply, moves the entry once.
    assert_eq!(mark_published(&setup.pool, second[0].hold, &confirmed, SOON).await?, 1);
    assert_eq!(mark_published(&setup.pool, second[0].hold, &confirmed, SOON).await?, 0);
    assert_eq!(setup.count(PUBLISHED).await?, 1);
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn lanes_of_a_killed_relay_are_taken_over_when_their_leases_end(pool: PgPool) -> Result<()> {
    let setup = Setup::new(&pool).await?;
    // Takes lanes and dies without giving them back.
    setup.emit_many(30).await?;
    let dead = take_lanes(&setup.pool, 64, "dead", Duration::from_secs(1), &[]).await?;
    assert!(!dead.is_empty());
    let relay = setup.start(Setup::config())?;
    setup.settles(PUBLISHED, 30).await?;
    relay.kill();
    let next = setup.start(Setup::config())?;
    setup.emit_many(30).await?;
    setup.settles(PUBLISHED, 60).await?;
    next.stop().await?;
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn a_commit_rings_only_for_a_sleeper_and_wakes_it(pool: PgPool) -> Result<()> {
    let setup = Setup::new(&pool).await?;
    let mut config = Setup::config();
    config.poll = Duration::from_secs(5);
    config.stall_after = Duration::from_secs(60);
    let relay = setup.start(config)?;
    let asleep = "select count(*) from backline.sleeper where channel = 'backline_outbox' and asleep_until > clock_timestamp()";
    setup.settles(asleep, 1).await?;
    let emitted = tokio::time::Instant::now();
    setup.emit_many(1).await?;
    setup.settles(PUBLISHED, 1).await?;
    assert!(emitted.elapsed() < Duration::from_secs(3), "woken by the poll, not by the bell");
    relay.stop().await?;
    assert_eq!(setup.count(asleep).await?, 0);
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn lanes_stolen_in_the_middle_of_the_work_lose_nothing(pool: PgPool) -> Result<()> {
    let setup = Setup::new(&pool).await?;
    setup.emit_many(3000).await?;
    let mut config = Setup::config();
    config.batch_rows = 5;
    let relay = setup.start(config)?;
    for stolen_at in [500, 1000, 1500] {
        let limit = tokio::time::Instant::now() + SOON;
        while setup.count(PUBLISHED).await? < stolen_at {
            anyhow::ensure!(tokio::time::Instant::now() < limit, "stuck before {stolen_at}");
        }
        let steal = "update backline.outbox_lane set token = nextval('backline.lane_token'), nonce = 1,
                     until = clock_timestamp() + interval '1 second' where until > clock_timestamp()";
        sqlx::query(steal).execute(&setup.pool).await?;
    }
    setup.settles(WAITING, 0).await?;
    let distinct = "select count(distinct id) from backline.outbox_published";
    assert_eq!((setup.count(PUBLISHED).await?, setup.count(distinct).await?), (3000, 3000));
    relay.stop().await?;
    Ok(())
}
