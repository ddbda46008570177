//! An application with conversations, as a producer: its tables, and what it does in its own transactions.
//!
//! Everything is SQL (`sql/`), callable from any language; these functions only name it for Rust. Each takes the
//! caller's connection, so that the transaction stays the caller's: state and what it owes at Twilio commit together or
//! not at all.
//!
//! ```no_run
//! # async fn example(pool: &sqlx::PgPool, conversation: uuid::Uuid, member: uuid::Uuid) -> sqlx::Result<()> {
//! let mut tx = pool.begin().await?;
//! backline_example_conversations::add_member(&mut tx, conversation, member).await?;
//! // … the application's other rows …
//! tx.commit().await
//! # }
//! ```

use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

/// Tables, functions and triggers, in the order in which they are created; Backline's own schema comes before them.
pub const SCHEMA: [&str; 3] = [
    include_str!("../sql/01_tables.sql"),
    include_str!("../sql/02_functions.sql"),
    include_str!("../sql/03_deletions.sql"),
];

/// Creates [`SCHEMA`].
///
/// # Errors
/// It exists already, or the database refuses it.
pub async fn install(tx: &mut PgConnection) -> sqlx::Result<()> {
    for part in SCHEMA {
        sqlx::raw_sql(part).execute(&mut *tx).await?;
    }
    Ok(())
}

/// Registers somebody in a project. `who` is as in `chat.member.who`.
///
/// # Errors
/// The project does not exist, or the database refuses it.
pub async fn register(tx: &mut PgConnection, member: Uuid, project: Uuid, who: &Value) -> sqlx::Result<()> {
    let sql = "insert into chat.member (id, project, who) values ($1, $2, $3)";
    sqlx::query(sql).bind(member).bind(project).bind(who).execute(tx).await.map(drop)
}

/// Opens a conversation; the answer is the operation that creates it at Twilio.
///
/// # Errors
/// The project does not exist, or the database refuses it.
pub async fn open_conversation(
    tx: &mut PgConnection,
    conversation: Uuid,
    project: Uuid,
    name: &str,
) -> sqlx::Result<Uuid> {
    let sql = "select chat.open_conversation($1, $2, $3)";
    sqlx::query_scalar(sql).bind(conversation).bind(project).bind(name).fetch_one(tx).await
}

/// Lets a member of the project join; the answer is the operation that adds them at Twilio.
///
/// # Errors
/// SQLSTATE 55000 if the conversation is not active, 22023 if the project does not have the member.
pub async fn add_member(tx: &mut PgConnection, conversation: Uuid, member: Uuid) -> sqlx::Result<Uuid> {
    let sql = "select chat.add_member($1, $2)";
    sqlx::query_scalar(sql).bind(conversation).bind(member).fetch_one(tx).await
}

/// Ends a membership; false if there was none.
///
/// # Errors
/// The database refuses it.
pub async fn remove_member(tx: &mut PgConnection, conversation: Uuid, member: Uuid) -> sqlx::Result<bool> {
    let sql = "select chat.remove_member($1, $2)";
    sqlx::query_scalar(sql).bind(conversation).bind(member).fetch_one(tx).await
}

/// Closes a conversation for good; `None` if it was not active.
///
/// # Errors
/// The database refuses it.
pub async fn close_conversation(tx: &mut PgConnection, conversation: Uuid) -> sqlx::Result<Option<Uuid>> {
    let sql = "select chat.close_conversation($1)";
    sqlx::query_scalar(sql).bind(conversation).fetch_one(tx).await
}

/// Closes a conversation for good and puts it away; `None` if it was archived before or does not exist.
///
/// # Errors
/// The database refuses it.
pub async fn archive_conversation(tx: &mut PgConnection, conversation: Uuid) -> sqlx::Result<Option<Uuid>> {
    let sql = "select chat.archive_conversation($1)";
    sqlx::query_scalar(sql).bind(conversation).fetch_one(tx).await
}

/// Deletes a conversation; false if there was none. Deleting its project or organization does the same.
///
/// # Errors
/// The database refuses it.
pub async fn delete_conversation(tx: &mut PgConnection, conversation: Uuid) -> sqlx::Result<bool> {
    let sql = "select chat.delete_conversation($1)";
    sqlx::query_scalar(sql).bind(conversation).fetch_one(tx).await
}
