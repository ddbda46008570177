//! Lowering ready lanes: always the last writes of a transaction that made operations ready.

use sqlx::PgConnection;
use std::collections::BTreeMap;
use time::OffsetDateTime;
use uuid::Uuid;

/// An operation that has just been made ready.
#[derive(Debug, Clone)]
pub(crate) struct MadeReady {
    pub(crate) kind: String,
    pub(crate) organization: Uuid,
    pub(crate) priority: i16,
    pub(crate) due_at: OffsetDateTime,
}

/// Lowers each touched lane once, in lane order, so that two transactions never wait for each other crosswise.
pub(crate) async fn lower(tx: &mut PgConnection, made: &[MadeReady]) -> Result<(), sqlx::Error> {
    if made.is_empty() {
        return Ok(());
    }
    let mut lanes: BTreeMap<(&str, Uuid, i16), OffsetDateTime> = BTreeMap::new();
    for row in made {
        let due = lanes.entry((&row.kind, row.organization, row.priority)).or_insert(row.due_at);
        *due = (*due).min(row.due_at);
    }
    let kinds: Vec<String> = lanes.keys().map(|(kind, ..)| (*kind).to_owned()).collect();
    let organizations: Vec<Uuid> = lanes.keys().map(|(_, organization, _)| *organization).collect();
    let priorities: Vec<i16> = lanes.keys().map(|(.., priority)| *priority).collect();
    let due: Vec<OffsetDateTime> = lanes.values().copied().collect();
    sqlx::query_file!("sql/lower_lanes.sql", &kinds, &organizations, &priorities, &due).execute(tx).await?;
    Ok(())
}
