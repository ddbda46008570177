//! The schema that this build needs, and whether a database has it.

use crate::Explained;
use sqlx::PgPool;
use sqlx::migrate::Migrator;
use std::sync::LazyLock;

/// The migrations that this build was made with, applied by `backline migrate`.
pub static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| {
    let mut migrations = sqlx::migrate!("../../migrations");
    migrations.dangerous_set_table_name(RECORD);
    migrations.create_schema("backline");
    migrations
});

/// The record that `backline migrate` keeps; made before the first migration, so that a part-way schema has it, too.
/// Not under sqlx's default name: the application may keep migrations of its own in the same database.
const RECORD: &str = "backline.migration";

/// Why this build does not work on a database.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// Older than this build needs.
    #[error(
        "schema: the database has {}, this build needs version {needed}: run `backline migrate` of this build first",
        found.map_or("no applied migrations".to_owned(), |version| format!("version {version}"))
    )]
    Older {
        /// Highest version up to which every migration is applied.
        found: Option<i64>,
        /// Version that is needed.
        needed: i64,
    },
    /// Not the migration that this build knows under the number.
    #[error(
        "schema: version {version} of the database is not the one of this build (version {needed} is needed): another history, which `backline migrate` refuses, too"
    )]
    Foreign {
        /// Which one.
        version: i64,
        /// Version that is needed.
        needed: i64,
    },
    /// A migration was begun and never completed.
    #[error(
        "schema: version {version} was applied in part (version {needed} is needed): mend it, then run `backline migrate`"
    )]
    Partial {
        /// Which one.
        version: i64,
        /// Version that is needed.
        needed: i64,
    },
    /// The record of applied migrations could not be read. Says nothing about the schema.
    #[error("schema: reading what was applied: {}", Explained(.0))]
    Database(#[from] sqlx::Error),
}

/// Checks, before anything else is done with a database, that it has every migration of this build. A newer one is
/// allowed: a rolling upgrade migrates first, and migrations keep what older builds use.
///
/// # Errors
/// [`SchemaError`], naming found and needed version.
pub async fn check_schema(pool: &PgPool) -> Result<(), SchemaError> {
    let applied = applied_migrations(pool).await?;
    let known: Vec<(i64, &[u8])> =
        MIGRATIONS.iter().map(|migration| (migration.version, migration.checksum.as_ref())).collect();
    if let Some(newer) = compare(&known, &applied)? {
        let built = known.last().map(|(version, _)| *version);
        tracing::info!(found = newer, built, "the schema is newer than this build, which is allowed");
    }
    Ok(())
}

/// What the database's record says was applied, in order of version; nothing before the first migration.
///
/// # Errors
/// The record could not be read.
pub async fn applied_migrations(pool: &PgPool) -> sqlx::Result<Vec<AppliedMigration>> {
    let recorded: bool =
        sqlx::query_scalar("select to_regclass($1) is not null").bind(RECORD).fetch_one(pool).await?;
    match recorded {
        true => sqlx::query_as(include_str!("../sql/applied_migrations.sql")).fetch_all(pool).await,
        false => Ok(Vec::new()),
    }
}

/// A row of the record.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct AppliedMigration {
    /// Its number.
    pub version: i64,
    /// Hash of its text, as `backline migrate` computed it.
    pub checksum: Vec<u8>,
    /// False: begun and never completed.
    pub success: bool,
}

/// The database's version when it is newer than what is known.
fn compare(known: &[(i64, &[u8])], applied: &[AppliedMigration]) -> Result<Option<i64>, SchemaError> {
    let needed = known.last().map_or(0, |(version, _)| *version);
    let mut found = None;
    for (version, checksum) in known {
        let version = *version;
        match applied.iter().find(|row| row.version == version) {
            None => return Err(SchemaError::Older { found, needed }),
            Some(row) if !row.success => return Err(SchemaError::Partial { version, needed }),
            Some(row) if row.checksum != *checksum => return Err(SchemaError::Foreign { version, needed }),
            Some(_) => found = Some(version),
        }
    }
    Ok(applied.iter().map(|row| row.version).max().filter(|highest| *highest > needed))
}

#[cfg(test)]
mod tests {
    use super::{AppliedMigration, compare};

    const KNOWN: [(i64, &[u8]); 2] = [(1, b"one"), (2, b"two")];

    fn applied(rows: &[(i64, &[u8])]) -> Vec<AppliedMigration> {
        let row = |(version, checksum): &(i64, &[u8])| AppliedMigration {
            version: *version,
            checksum: checksum.to_vec(),
            success: true,
        };
        rows.iter().map(row).collect()
    }

    fn refusal(applied: &[AppliedMigration]) -> String {
        compare(&KNOWN, applied).err().map_or_else(String::new, |error| error.to_string())
    }

    #[test]
    fn the_same_and_a_newer_schema_are_accepted() {
        assert!(matches!(compare(&KNOWN, &applied(&KNOWN)), Ok(None)));
        let newer = applied(&[(1, b"one"), (2, b"two"), (3, b"three")]);
        assert!(matches!(compare(&KNOWN, &newer), Ok(Some(3))));
    }

    #[test]
    fn an_older_schema_is_refused_with_both_versions_and_the_remedy() {
        let none = refusal(&[]);
        assert!(none.contains("no applied migrations") && none.contains("needs version 2"), "{none}");
        let older = refusal(&applied(&[(1, b"one")]));
        assert!(older.contains("has version 1") && older.contains("`backline migrate`"), "{older}");
        let gap = refusal(&applied(&[(2, b"two"), (3, b"three")]));
        assert!(gap.contains("no applied migrations"), "a gap is not filled by what comes after: {gap}");
    }

    #[test]
    fn another_history_and_a_half_applied_migration_are_refused_even_below_newer_ones() {
        let foreign = refusal(&applied(&[(1, b"one"), (2, b"else"), (3, b"three")]));
        assert!(foreign.contains("version 2 of the database is not the one of this build"), "{foreign}");
        let mut partial = applied(&KNOWN);
        partial[1].success = false;
        assert!(refusal(&partial).contains("version 2 was applied in part"));
    }
}
