//! Recording what the broker said.

use super::{DrainError, LaneHold};
use crate::run_tx;
use sqlx::PgPool;
use std::time::Duration;

/// An entry that the broker confirmed.
#[derive(Clone, Debug)]
pub struct Confirmed {
    /// Its number inside the lane.
    pub seq: i64,
    /// The broker's id of the publication.
    pub message_id: String,
}

/// An entry that the broker will never take.
#[derive(Clone, Debug)]
pub struct Refused {
    /// Its number inside the lane.
    pub seq: i64,
    /// Why, for whoever decides about it.
    pub reason: String,
}

/// Moves confirmed entries to the published ones, in one statement, and lengthens the lane's lease.
///
/// Returns how many moved; fewer than given means that an earlier call, whose reply was lost, had moved them.
///
/// # Errors
/// [`DrainError::Fenced`] when the lane was lost: nothing moved, and its new holder publishes the entries again with
/// the same ids and bytes. Otherwise the database's error.
pub async fn mark_published(
    pool: &PgPool,
    hold: LaneHold,
    confirmed: &[Confirmed],
    lease: Duration,
) -> Result<u64, DrainError> {
    let seqs: Vec<i64> = confirmed.iter().map(|entry| entry.seq).collect();
    let message_ids: Vec<String> = confirmed.iter().map(|entry| entry.message_id.clone()).collect();
    run_tx!(pool, "relay.mark", |tx| async {
        let LaneHold { lane, token, nonce } = hold;
        let query = sqlx::query_file!(
            "sql/mark_published.sql",
            lane,
            token,
            nonce,
            &seqs,
            &message_ids,
            lease.as_secs_f64()
        );
        let done = query.fetch_one(tx).await?;
        if done.held { Ok(done.published.unsigned_abs()) } else { Err(DrainError::Fenced) }
    })
}

/// Sets refused entries aside, with reasons: an explicit gap in the lane's order. Returns how many.
///
/// # Errors
/// [`DrainError::Fenced`] when the lane was lost, else the database's error.
pub async fn park(pool: &PgPool, hold: LaneHold, refused: &[Refused]) -> Result<u64, DrainError> {
    let seqs: Vec<i64> = refused.iter().map(|entry| entry.seq).collect();
    let reasons: Vec<String> = refused.iter().map(|entry| entry.reason.clone()).collect();
    run_tx!(pool, "relay.park", |tx| async {
        let query = sqlx::query_file!("sql/park.sql", hold.lane, hold.token, hold.nonce, &seqs, &reasons);
        let done = query.fetch_one(tx).await?;
        if done.held { Ok(done.parked.unsigned_abs()) } else { Err(DrainError::Fenced) }
    })
}
