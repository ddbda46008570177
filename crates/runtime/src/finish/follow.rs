//! What follows when operations leave their claims: released keys go to their next waiter, lanes are lowered.

use crate::claim::{MadeReady, lower};
use sqlx::PgConnection;
use uuid::Uuid;

/// A serial key that its holder gave up.
pub(crate) type Released = (Uuid, String);

/// Runs after the releasing statement, in the same transaction: only a later statement sees waiters that committed
/// while the release waited for them.
pub(crate) async fn follow(
    tx: &mut PgConnection,
    mut released: Vec<Released>,
    mut ready: Vec<MadeReady>,
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
    lower(tx, &ready).await
}
