//! The outbox: intent committed with business state, and its hand-over to the broker.
//!
//! Producers need three calls, each inside a transaction of their own: [`append()`], [`append_all`] and [`enqueue`]
//! (thin over SQL functions of the same meaning, which every other language calls directly). The relay uses
//! [`drain`]. [`run_tx!`] is the one place of the product that opens transactions, [`check_schema`] the one that knows
//! which schema a build needs, and [`Explained`] the one that says what to do when `DATABASE_URL` leads nowhere.

mod access;
mod append;
mod doorbell;
pub mod drain;
mod error;
mod operation;
mod run_tx;
mod schema;
mod session;

pub use access::{
    AccessError, Explained, Pauses, await_database, database_options, is_outage, reach, remedy,
};
pub use append::{NewEvent, append, append_all};
pub use doorbell::Doorbell;
pub use error::AppendError;
pub use operation::{NewOperation, enqueue};
pub use run_tx::{AsTransient, BeginTx, Repetitions, Tx, TxName};
pub use schema::{AppliedMigration, MIGRATIONS, SchemaError, applied_migrations, check_schema};
pub use session::Session;
pub use sqlx::PgConnection;
