//! Deliberate defects in the shape of SQL, each behind its switch ([`backline_crash_point::seeded_bug`]): what the
//! promise tests must catch without knowing it. Those in the shape of code stand where they act.

use crate::Error;
use crate::claim::Claim;
use backline_crash_point::seeded_bug;
use sqlx::{PgConnection, PgPool};
use std::collections::HashMap;
use uuid::Uuid;

/// 4: complete without token check. 5: complete without generation check. 25: the newer generation is dropped.
pub(crate) async fn before_finish(tx: &mut PgConnection, claim: &Claim) -> Result<(), Error> {
    let (id, fence) = (claim.operation.id, claim.fence);
    if seeded_bug(4) {
        sqlx::query_file!("sql/seeded/complete_without_token.sql", id, fence.token, fence.nonce, fence.lease)
            .execute(&mut *tx)
            .await?;
    }
    if seeded_bug(5) {
        sqlx::query_file!("sql/seeded/complete_without_generation.sql", id, fence.token, fence.nonce)
            .execute(&mut *tx)
            .await?;
    }
    if seeded_bug(25) {
        sqlx::query_file!("sql/seeded/complete_under_newest.sql", id, fence.token, fence.nonce)
            .execute(&mut *tx)
            .await?;
    }
    Ok(())
}

/// 26: the serial key is freed on unknown. Answers whose it was.
pub(crate) async fn free_keys(
    tx: &mut PgConnection,
    left: &[Uuid],
) -> Result<HashMap<Uuid, String>, sqlx::Error> {
    if !seeded_bug(26) {
        return Ok(HashMap::new());
    }
    let rows = sqlx::query_file!("sql/seeded/free_key_of_unknown.sql", left).fetch_all(tx).await?;
    Ok(rows.into_iter().map(|row| (row.operation_id, row.serial_key)).collect())
}

/// 21: identity lost between the hot table and history.
pub(crate) async fn forget_identity(tx: &mut PgConnection, ids: &[Uuid]) -> Result<(), sqlx::Error> {
    sqlx::query_file!("sql/seeded/forget_identity.sql", ids).execute(tx).await?;
    Ok(())
}

/// 12: the sweep's snapshot.
pub(crate) async fn reclaim_snapshot(pool: &PgPool) -> Result<Vec<i64>, Error> {
    if seeded_bug(12) {
        return Ok(sqlx::query_file_scalar!("sql/seeded/expired_leases.sql").fetch_all(pool).await?);
    }
    Ok(Vec::new())
}

/// 12: the sweep updates by id from its snapshot. 13: the last attempt is not swept.
pub(crate) async fn before_reclaim(tx: &mut PgConnection, snapshot: &[i64]) -> Result<(), Error> {
    if seeded_bug(12) {
        sqlx::query_file!("sql/seeded/reclaim_by_id.sql", snapshot).execute(&mut *tx).await?;
    }
    if seeded_bug(13) {
        sqlx::query_file!("sql/seeded/skip_last_attempt.sql").execute(tx).await?;
    }
    Ok(())
}

/// 22: cancelling a running payment loses its result.
pub(crate) async fn before_cancel(tx: &mut PgConnection) -> Result<(), Error> {
    if seeded_bug(22) {
        sqlx::query_file!("sql/seeded/cancel_running.sql").execute(tx).await?;
    }
    Ok(())
}
