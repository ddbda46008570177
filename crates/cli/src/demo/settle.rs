//! Waiting until nothing is under way any more.

use super::stage::Stage;
use anyhow::Context;
use indicatif::ProgressBar;
use reqwest::Client;
use serde::Deserialize;
use sqlx::PgPool;
use std::time::Duration;
use tokio::task::block_in_place;
use tokio::time::Instant;

/// How often is looked.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// `GET /ledger?summary` of the sandbox.
#[derive(Debug, Deserialize)]
struct Summary {
    operations_settled: u64,
}

/// What is still under way.
#[derive(Debug, sqlx::FromRow)]
struct UnderWay {
    unpublished: i64,
    requested: i64,
    /// Unfinished and able to go on by itself.
    moving: i64,
}

/// Waits until all payments have settled and every queue, that of the conversations included, is empty, or what is left cannot go on by itself.
/// False when `patience` ran out before that.
pub(super) async fn settle(
    stage: &mut Stage,
    pool: &PgPool,
    client: &Client,
    payments: u64,
    patience: Duration,
    bar: &ProgressBar,
) -> anyhow::Result<bool> {
    let sandbox = format!("http://{}", stage.stack.sandbox);
    let end = Instant::now() + patience;
    loop {
        block_in_place(|| stage.keep_alive())?;
        let settled = settled(client, &sandbox).await?;
        bar.set_position(settled);
        if let Ok(under_way) = under_way(pool).await {
            bar.set_message(format!(
                "unpublished {}, requested {}, open {}",
                under_way.unpublished, under_way.requested, under_way.moving
            ));
            let quiet = under_way.unpublished + under_way.requested + under_way.moving == 0;
            if quiet && (settled >= payments || stopped(pool).await?) {
                return Ok(true);
            }
        }
        if Instant::now() >= end {
            return Ok(false);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn settled(client: &Client, sandbox: &str) -> anyhow::Result<u64> {
    let reply = client.get(format!("{sandbox}/ledger?summary")).send().await.context("sandbox /ledger")?;
    Ok(reply.json::<Summary>().await.context("sandbox /ledger")?.operations_settled)
}

async fn under_way(pool: &PgPool) -> sqlx::Result<UnderWay> {
    sqlx::query_as(
        "select (select count(*) from backline.outbox where parked_at is null) as unpublished,
            (select count(*) from backline.intake) as requested,
            (select count(*) from backline.operation where state not in ('manual', 'dead')) as moving",
    )
    .fetch_one(pool)
    .await
}

/// Something waits for a person, or a payment has failed, so waiting longer cannot help. That a conversation's intent
/// was obsolete is nothing of the kind.
async fn stopped(pool: &PgPool) -> sqlx::Result<bool> {
    sqlx::query_scalar(
        "select exists (select from backline.operation where state in ('manual', 'dead'))
             or exists (select from backline.outbox where parked_at is not null)
             or exists (select from backline.operation_history where outcome <> 'succeeded' and kind like 'stripe.%')",
    )
    .fetch_one(pool)
    .await
}
