//! The books: what the application was promised, what the provider did, what the database says.

use super::journal::{self, Line};
use reqwest::Client;
use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use uuid::Uuid;

/// Kind of the effect at the provider.
const KIND: &str = "transfer";

/// `GET /ledger` of the sandbox.
#[derive(Debug, Deserialize)]
struct Ledger {
    applied_without_operation: u64,
    totals: HashMap<String, HashMap<String, Total>>,
    operations: BTreeMap<Uuid, Entry>,
}

#[derive(Debug, Deserialize)]
struct Total {
    amount: i64,
}

#[derive(Debug, Deserialize)]
struct Entry {
    applied: u64,
    settled: u64,
}

/// Counted faults and their mending.
#[derive(Debug, Default, Serialize)]
pub(super) struct Faults {
    /// Effects whose reply never arrived.
    pub(super) lost_replies: usize,
    pub(super) throttled: usize,
    /// 500s that the provider's idempotency layer repeated.
    pub(super) replayed_500: usize,
    pub(super) stale_refused: i64,
    pub(super) unknowns_resolved: i64,
}

/// The balance.
#[derive(Debug, Serialize)]
pub(super) struct Balance {
    pub(super) accepted: usize,
    pub(super) applied: usize,
    pub(super) settled: usize,
    pub(super) lost: usize,
    pub(super) doubled: usize,
    pub(super) unknown: usize,
    pub(super) accepted_minor: i64,
    pub(super) applied_minor: i64,
    pub(super) applied_without_operation: u64,
}

impl Balance {
    /// Every promise kept once, to the cent.
    pub(super) fn balances(&self, payments: usize) -> bool {
        self.accepted == payments
            && self.applied == payments
            && self.settled == payments
            && (self.lost, self.doubled, self.unknown, self.applied_without_operation) == (0, 0, 0, 0)
            && self.accepted_minor == self.applied_minor
    }

    pub(super) fn line(&self) -> String {
        let Self { accepted, applied, settled, lost, doubled, unknown, .. } = self;
        format!(
            "ledger accepted={accepted} applied={applied} settled={settled} lost={lost} doubled={doubled} unknown={unknown}"
        )
    }
}

/// Compares the three books. The provider's journal decides what was applied; the database only tells which operation
/// belongs to which payment.
pub(super) async fn balance(
    accepted: &BTreeMap<String, (Uuid, i64)>,
    pool: &PgPool,
    client: &Client,
    sandbox: &str,
) -> anyhow::Result<Balance> {
    let ledger: Ledger = journal::page(client, sandbox, "/ledger").await?.json().await?;
    let applied = |id: &Uuid| ledger.operations.get(id).is_some_and(|entry| entry.applied > 0);
    let events: BTreeSet<Uuid> = accepted.values().map(|(event, _)| *event).collect();
    let paid: BTreeSet<Uuid> =
        submissions(pool).await?.into_iter().filter(|(_, id)| applied(id)).map(|(event, _)| event).collect();
    let totals = ledger.totals.get(KIND);
    Ok(Balance {
        accepted: accepted.len(),
        applied: ledger.operations.values().filter(|entry| entry.applied > 0).count(),
        settled: ledger.operations.values().filter(|entry| entry.settled > 0).count(),
        lost: events.difference(&paid).count(),
        doubled: ledger.operations.values().filter(|entry| entry.applied > 1).count(),
        unknown: usize::try_from(stuck(pool).await?).unwrap_or(usize::MAX),
        accepted_minor: accepted.values().map(|(_, minor)| minor).sum(),
        applied_minor: totals.map_or(0, |totals| totals.values().map(|total| total.amount).sum()),
        applied_without_operation: ledger.applied_without_operation,
    })
}

/// (event, operation) of every submission.
async fn submissions(pool: &PgPool) -> anyhow::Result<Vec<(Uuid, Uuid)>> {
    let sql = "select causation_id, id from backline.operation_history where kind = 'stripe.transfer' and causation_id is not null
               union select causation_id, id from backline.operation where kind = 'stripe.transfer' and causation_id is not null";
    Ok(sqlx::query_as(sql).fetch_all(pool).await?)
}

/// Operations that are not known to have ended well or not.
async fn stuck(pool: &PgPool) -> anyhow::Result<i64> {
    let sql = "select count(*) from backline.operation where state in ('unknown', 'manual', 'dead')";
    Ok(sqlx::query_scalar(sql).fetch_one(pool).await?)
}

/// Counts what was done to the processes' work; a fault that never happened proves nothing.
pub(super) async fn faults(pool: &PgPool, client: &Client, sandbox: &str) -> anyhow::Result<Faults> {
    let lines = journal::of("stripe", client, sandbox).await?;
    let count = |is: fn(&Line) -> bool| lines.iter().filter(|line| is(line)).count();
    let stale = "select count(*) from backline.attempt_evidence e
                 where e.fenced and exists (select from backline.operation_history h where h.id = e.operation_id and h.kind like 'stripe.%')";
    let resolved = "select count(distinct h.id) from backline.operation_history h join backline.attempt_evidence e on e.operation_id = h.id
                    where e.class = 'unknown' and h.outcome = 'succeeded' and h.kind like 'stripe.%'";
    Ok(Faults {
        lost_replies: count(Line::lost_reply),
        throttled: count(Line::throttled),
        replayed_500: count(|line| line.replayed && line.replied == 500),
        stale_refused: sqlx::query_scalar(stale).fetch_one(pool).await?,
        unknowns_resolved: sqlx::query_scalar(resolved).fetch_one(pool).await?,
    })
}

#[cfg(test)]
mod tests {
    use super::Balance;

    fn balance() -> Balance {
        Balance {
            accepted: 3,
            applied: 3,
            settled: 3,
            lost: 0,
            doubled: 0,
            unknown: 0,
            accepted_minor: 600,
            applied_minor: 600,
            applied_without_operation: 0,
        }
    }

    #[test]
    fn one_deviation_anywhere_breaks_the_balance() {
        assert!(balance().balances(3));
        assert_eq!(balance().line(), "ledger accepted=3 applied=3 settled=3 lost=0 doubled=0 unknown=0");
        let broken = [
            Balance { accepted: 2, ..balance() },
            Balance { applied: 4, ..balance() },
            Balance { settled: 2, ..balance() },
            Balance { lost: 1, ..balance() },
            Balance { doubled: 1, ..balance() },
            Balance { unknown: 1, ..balance() },
            Balance { applied_minor: 700, ..balance() },
            Balance { applied_without_operation: 1, ..balance() },
        ];
        assert!(broken.iter().all(|balance| !balance.balances(3)));
    }
}
