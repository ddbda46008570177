//! What follows when operations leave their claims: released keys go to their next waiter, lanes are lowered.

use crate::claim::{Claim, MadeReady, lower};
use sqlx::PgConnection;
use uuid::Uuid;

/// A serial key that its holder gave up.
pub(crate) type Released = (Uuid, String);

/// Room in a capped lane that an ended claim gives back.
pub(crate) type Freed = (String, Uuid, i16);

/// The room of an accepted end, where its lane has a cap.
pub(crate) fn freed(claim: &Claim) -> Option<Freed> {
    let operation = &claim.operation;
    claim.capped.map(|priority| (operation.kind.clone(), operation.organization, priority))
}

/// Runs after the releasing statement, in the same transaction: only a later statement sees waiters that committed
/// while the release waited for them.
pub(crate) async fn follow(
    tx: &mut PgConnection,
    mut released: Vec<Released>,
    mut ready: Vec<MadeReady>,
    freed: Vec<Freed>,
) -> Result<(), sqlx::Error> {
    if !released.is_empty() {
        released.sort_unstable();
        let (organizations, keys): (Vec<Uuid>, Vec<String>) = released.into_iter().unzip();
        let promoted =
            sqlx::query_file!("sql/promote_waiting.sql", &organizations, &keys).fetch_all(&mut *tx).await?;
        ready.extend(promoted.into_iter().map(|row| MadeReady {
            kind: row.kind,
            organization: row.organization,
            priority: row.priority,
            due_at: row.due_at,
        }));
    }
    if !freed.is_empty() {
        let kinds: Vec<String> = freed.iter().map(|(kind, ..)| kind.clone()).collect();
        let organizations: Vec<Uuid> = freed.iter().map(|(_, organization, _)| *organization).collect();
        let priorities: Vec<i16> = freed.iter().map(|(.., priority)| *priority).collect();
        sqlx::query_file!("sql/free_room.sql", &kinds, &organizations, &priorities).execute(&mut *tx).await?;
    }
    lower(tx, &ready).await
}
