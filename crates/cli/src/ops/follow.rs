//! What follows a decision in its transaction: released keys go to their next waiter, lanes are lowered, workers rung.

use sqlx::PgConnection;
use time::OffsetDateTime;
use uuid::Uuid;

/// An operation that has just been made ready.
#[derive(Debug)]
pub(super) struct MadeReady {
    pub(super) kind: String,
    pub(super) organization: Uuid,
    pub(super) priority: i16,
    pub(super) due_at: OffsetDateTime,
}

/// Runs after the statement of the decision: only a later statement sees waiters that committed meanwhile. The runtime's
/// own statements, so that an operator's transition leaves the same traces as a worker's.
pub(super) async fn follow(
    tx: &mut PgConnection,
    released: Option<(Uuid, String)>,
    ready: Option<MadeReady>,
) -> sqlx::Result<()> {
    let mut ready: Vec<MadeReady> = ready.into_iter().collect();
    if let Some((organization, key)) = released {
        let promoted = sqlx::query_file!("../runtime/sql/promote_waiting.sql", &[organization], &[key])
            .fetch_all(&mut *tx)
            .await?;
        ready.extend(promoted.into_iter().map(|row| MadeReady {
            kind: row.kind,
            organization: row.organization,
            priority: row.priority,
            due_at: row.due_at,
        }));
    }
    if ready.is_empty() {
        return Ok(());
    }
    let kinds: Vec<String> = ready.iter().map(|row| row.kind.clone()).collect();
    let organizations: Vec<Uuid> = ready.iter().map(|row| row.organization).collect();
    let priorities: Vec<i16> = ready.iter().map(|row| row.priority).collect();
    let due: Vec<OffsetDateTime> = ready.iter().map(|row| row.due_at).collect();
    sqlx::query_file!("../runtime/sql/lower_lanes.sql", &kinds, &organizations, &priorities, &due)
        .execute(&mut *tx)
        .await?;
    sqlx::query_file!("sql/ring_intake.sql").execute(&mut *tx).await?;
    Ok(())
}
