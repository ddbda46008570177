//! The doorbell: silent for the awake, replaced when its connection dies (field cases 35, 39).

use anyhow::{Context, Result};
use backline_envelope::Payload;
use backline_outbox::{Doorbell, NewOperation, enqueue, run_tx};
use sqlx::PgPool;
use std::time::Duration;
use tokio::time::Instant;
use uuid::Uuid;

const SOON: Duration = Duration::from_secs(20);
const ASLEEP: &str = "select count(*) from backline.sleeper where asleep_until > clock_timestamp()";

/// Declares sleep until the declaration is there: the listener connects by itself, in its own time.
async fn fall_asleep(pool: &PgPool, bell: &Doorbell) -> Result<()> {
    let limit = Instant::now() + SOON;
    loop {
        bell.fall_asleep().await?;
        let asleep: i64 = sqlx::query_scalar(ASLEEP).fetch_one(pool).await?;
        if asleep == 1 {
            return Ok(());
        }
        anyhow::ensure!(Instant::now() < limit, "never asleep");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn ask(pool: &PgPool) -> Result<()> {
    // Bytes that grow when escaped: the notification must not carry any of them.
    let text = "\u{1F600}".repeat(2000);
    let input = Payload::encode(&text)?;
    let operation =
        NewOperation::new("example.effect", Uuid::from_u128(1), Uuid::new_v4().to_string(), input);
    run_tx!(pool, "test.enqueue", |tx| async { enqueue(tx, &operation).await })?;
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn a_commit_wakes_a_sleeper(pool: PgPool) -> Result<()> {
    let bell = Doorbell::listen(&pool, "backline_intake");
    fall_asleep(&pool, &bell).await?;
    ask(&pool).await?;
    assert!(bell.wait(SOON).await);
    bell.wake().await?;
    let asleep: i64 = sqlx::query_scalar(ASLEEP).fetch_one(&pool).await?;
    assert_eq!(asleep, 0);
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn a_listener_that_was_cut_off_is_replaced_and_its_sleeper_looks_again(pool: PgPool) -> Result<()> {
    let bell = Doorbell::listen(&pool, "backline_intake");
    fall_asleep(&pool, &bell).await?;
    sqlx::query(
        "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and query ilike 'listen %'",
    )
    .execute(&pool)
    .await?;
    // What was committed while nobody listened may have rung for nobody.
    anyhow::ensure!(bell.wait(SOON).await, "the cut was not noticed");
    let limit = Instant::now() + SOON;
    loop {
        fall_asleep(&pool, &bell).await?;
        ask(&pool).await?;
        if bell.wait(Duration::from_millis(500)).await {
            return Ok(());
        }
        anyhow::ensure!(Instant::now() < limit, "never woken again");
    }
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn without_listening_nobody_is_asked_to_notify(pool: PgPool) -> Result<()> {
    let bell = Doorbell::polling(&pool, "backline_intake");
    bell.fall_asleep().await?;
    let asleep: i64 = sqlx::query_scalar(ASLEEP).fetch_one(&pool).await.context("sleepers")?;
    assert_eq!(asleep, 0);
    Ok(())
}
