//! One end in a transaction of its own: handlers with rows, and ends that a batch did not accept.

use crate::Error;
use crate::author::Record;
use crate::author::erased::{Ending, Handler};
use crate::claim::MadeReady;
use crate::finish::batch::{finish, leave};
use crate::finish::columns::{Evidencing, Finishing, Leaving};
use crate::finish::follow::{follow, freed};
use crate::finish::{Ended, How};
use crate::seeded;
use backline_crash_point::seeded_bug;
use backline_failure::Mode;
use backline_outbox::{Session, run_tx};
use futures_util::FutureExt;
use sqlx::{PgConnection, PgPool};
use std::panic::AssertUnwindSafe;

/// Writes one end. `Ok(false)` = fenced: the claim is no longer current, nothing was written except the evidence.
pub(crate) async fn write(
    pool: &PgPool,
    session: &mut Session,
    handler: &dyn Handler,
    ended: &Ended,
) -> Result<bool, Error> {
    let written = run_tx!(&mut *session, "finish_one", |tx| one(tx, handler, ended));
    if written.is_ok() {
        session.keep();
    } else {
        session.release();
    }
    match written {
        Err(Error::Fenced) => {
            metrics::counter!("backline_stale_writes_refused_total", "kind" => handler.kind()).increment(1);
            tracing::warn!(operation = %ended.claim.operation.id, kind = handler.kind(), "stale write refused");
            let mut evidence = Evidencing::default();
            evidence.push(ended, true);
            run_tx!(pool, "evidence", |tx| evidence.write(tx))?;
            Ok(false)
        }
        // Outcome and children in two transactions.
        Ok(()) if seeded_bug(9) && ended.how.records(handler) => {
            run_tx!(pool, "finish_children", |tx| record(tx, handler, ended)).map(|()| true)
        }
        other => other.map(|()| true),
    }
}

async fn one(tx: &mut PgConnection, handler: &dyn Handler, ended: &Ended) -> Result<(), Error> {
    let claim = &ended.claim;
    let (id, fence) = (claim.operation.id, claim.fence);
    seeded::before_finish(tx, claim).await?;
    let reconcile = handler.spec().mode == Mode::Reconcile;
    let locked =
        sqlx::query_file!("sql/lock_claim.sql", id, fence.token, fence.nonce, fence.lease, reconcile)
            .fetch_optional(&mut *tx)
            .await?;
    let Some(locked) = locked else {
        // A COMMIT reply may have been lost: an outcome that carries this very claim is our own success.
        let own = sqlx::query_file_scalar!("sql/own_outcome.sql", &[id], &[fence.token], &[fence.nonce])
            .fetch_optional(&mut *tx)
            .await?;
        return if own.is_some() { Ok(()) } else { Err(Error::Fenced) };
    };
    let room = freed(claim).into_iter().collect();
    match &ended.how {
        How::Finish { .. } => {
            if ended.how.records(handler) && !seeded_bug(9) {
                record(tx, handler, ended).await?;
            }
            let mut row = Finishing::default();
            row.push(ended);
            let verify = locked.verify && !locked.newer;
            if verify {
                sqlx::query_file!("sql/verify_later.sql", id).execute(&mut *tx).await?;
            }
            if locked.newer || verify {
                let next = end_generation(tx, &row, verify).await?;
                follow(tx, next.0, next.1, room).await?;
            } else {
                let released = finish(tx, &row).await?;
                let released =
                    released.into_iter().filter_map(|(_, o, key)| key.map(|key| (o, key))).collect();
                follow(tx, released, Vec::new(), room).await?;
            }
        }
        How::Leave { .. } => {
            // With a newer generation asked for, it is tried again and nobody is asked.
            if ended.how.records(handler) && !locked.newer {
                record(tx, handler, ended).await?;
            }
            let (mut row, mut evidence) = (Leaving::default(), Evidencing::default());
            row.push(ended);
            evidence.push(ended, false);
            let left = leave(tx, &row).await?;
            evidence.write(tx).await?;
            let released =
                left.iter().filter_map(|l| l.released_key.clone().map(|key| (l.organization, key)));
            let released = released.collect();
            follow(tx, released, left.into_iter().filter_map(|l| l.ready).collect(), room).await?;
        }
    }
    Ok(())
}

/// Lends the transaction to the handler. A panic is a refusal: uncaught it would leave the claim to its lease, and come
/// back with every one.
async fn record(tx: &mut PgConnection, handler: &dyn Handler, ended: &Ended) -> Result<(), Error> {
    AssertUnwindSafe(lend(tx, handler, ended))
        .catch_unwind()
        .await
        .unwrap_or_else(|_panic| Err(Error::Record("record panicked".to_owned())))
}

/// For the handler's rows and its follow-up work.
async fn lend(tx: &mut PgConnection, handler: &dyn Handler, ended: &Ended) -> Result<(), Error> {
    let (record, input) = (Record { tx, operation: &ended.claim.operation }, &ended.claim.input);
    let (outcome, code, detail, output) = match &ended.how {
        How::Finish { outcome, code, detail, output } => (outcome, code, detail, output),
        How::Leave { failure: Some(why), .. } => return handler.ask_person(record, input, why).await,
        How::Leave { failure: None, .. } => return Ok(()),
    };
    let ending = Ending {
        outcome: *outcome,
        code: code.as_deref().unwrap_or(""),
        detail: detail.as_deref().unwrap_or(""),
        output: output.as_deref(),
    };
    handler.record(record, input, ending).await
}

type Next = (Vec<(uuid::Uuid, String)>, Vec<MadeReady>);

async fn end_generation(tx: &mut PgConnection, row: &Finishing, verify: bool) -> Result<Next, sqlx::Error> {
    let rows = sqlx::query_file!(
        "sql/end_generation.sql",
        &row.id,
        &row.token,
        &row.nonce,
        &row.lease,
        &row.outcome,
        &row.code as _,
        &row.detail as _,
        &row.output as _,
        verify,
    )
    .fetch_all(tx)
    .await?;
    let released =
        rows.iter().filter_map(|row| row.serial_key.clone().map(|key| (row.organization, key))).collect();
    let ready = rows
        .into_iter()
        .map(|row| MadeReady {
            kind: row.kind,
            organization: row.organization,
            priority: row.priority,
            due_at: row.due_at,
        })
        .collect();
    Ok((released, ready))
}
