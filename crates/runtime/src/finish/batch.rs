//! Many ends in one transaction.

use crate::Error;
use crate::claim::MadeReady;
use crate::finish::columns::{Evidencing, Finishing, Leaving};
use crate::finish::follow::{follow, freed};
use crate::finish::{Ended, How};
use crate::seeded;
use backline_crash_point::seeded_bug;
use backline_outbox::run_tx;
use sqlx::{PgConnection, PgPool};
use std::collections::HashSet;
use uuid::Uuid;

/// Writes all ends and drops `empty` leases; returns the ids that were accepted. The others were not current in this
/// transaction and are looked at one by one.
pub(crate) async fn write(pool: &PgPool, ends: &[Ended], empty: &[i64]) -> Result<HashSet<Uuid>, Error> {
    let mut order: Vec<&Ended> = ends.iter().collect();
    order.sort_unstable_by_key(|ended| ended.claim.operation.id);
    let (mut finishing, mut leaving) = (Finishing::default(), Leaving::default());
    for ended in &order {
        match ended.how {
            How::Finish { .. } => finishing.push(ended),
            How::Leave { .. } => leaving.push(ended),
        }
    }
    run_tx!(pool, "finish", |tx| async {
        let mut released = Vec::new();
        let mut ready = Vec::new();
        let mut accepted = HashSet::with_capacity(ends.len());
        if !finishing.id.is_empty() {
            let rows = finish(tx, &finishing).await?;
            for (id, organization, key) in rows {
                accepted.insert(id);
                released.extend(key.map(|key| (organization, key)));
            }
        }
        if !leaving.id.is_empty() {
            for row in leave(tx, &leaving).await? {
                accepted.insert(row.id);
                released.extend(row.released_key.map(|key| (row.organization, key)));
                ready.extend(row.ready);
            }
            // What was not accepted comes again by itself, and is fenced then or was this very end.
            let mut evidence = Evidencing::default();
            for ended in order.iter().filter(|ended| accepted.contains(&ended.claim.operation.id)) {
                evidence.push(ended, false);
            }
            evidence.write(tx).await?;
        }
        let room = ends.iter().filter(|ended| accepted.contains(&ended.claim.operation.id));
        let room = room.filter_map(|ended| freed(&ended.claim)).collect();
        follow(tx, released, ready, room).await?;
        if !empty.is_empty() {
            sqlx::query_file!("sql/drop_leases.sql", empty).execute(&mut *tx).await?;
        }
        Ok::<_, Error>(accepted)
    })
}

pub(crate) async fn finish(
    tx: &mut PgConnection,
    rows: &Finishing,
) -> Result<Vec<(Uuid, Uuid, Option<String>)>, sqlx::Error> {
    let rows = sqlx::query_file!(
        "sql/finish.sql",
        &rows.id,
        &rows.token,
        &rows.nonce,
        &rows.lease,
        &rows.outcome,
        &rows.code as _,
        &rows.detail as _,
        &rows.output as _,
    )
    .fetch_all(&mut *tx)
    .await?;
    if seeded_bug(21) {
        let ended: Vec<Uuid> = rows.iter().map(|row| row.id).collect();
        seeded::forget_identity(tx, &ended).await?;
    }
    Ok(rows.into_iter().map(|row| (row.id, row.organization, row.serial_key)).collect())
}

pub(crate) struct Left {
    pub(crate) id: Uuid,
    pub(crate) organization: Uuid,
    pub(crate) released_key: Option<String>,
    pub(crate) ready: Option<MadeReady>,
}

pub(crate) async fn leave(tx: &mut PgConnection, rows: &Leaving) -> Result<Vec<Left>, sqlx::Error> {
    let left = sqlx::query_file!(
        "sql/leave.sql",
        &rows.id,
        &rows.token,
        &rows.nonce,
        &rows.lease,
        &rows.state,
        &rows.delay_ms,
        &rows.counted,
        &rows.next_submission,
        &rows.repeatable,
        &rows.class as _,
        &rows.code as _,
        &rows.detail as _,
    )
    .fetch_all(&mut *tx)
    .await?;
    let mut freed = seeded::free_keys(tx, &rows.id).await?;
    Ok(left
        .into_iter()
        .map(|row| Left {
            id: row.id,
            organization: row.organization,
            released_key: row.released_key.or_else(|| freed.remove(&row.id)),
            ready: row.ready.then_some(MadeReady {
                kind: row.kind,
                organization: row.organization,
                priority: row.priority,
                due_at: row.due_at,
            }),
        })
        .collect())
}
