//! What can go wrong in the runtime itself; failures of effects are [`backline_failure::Failure`].

use backline_outbox::{AccessError, AsTransient, Explained};
use backline_telemetry::TelemetryError;

/// An error of the runtime.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database refused or was unreachable.
    #[error("database: {}", Explained(.0))]
    Database(#[from] sqlx::Error),
    /// `DATABASE_URL` leads nowhere, or to a database that is not migrated for this build. Nothing was begun.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The claim is no longer current: somebody else owns the operation now. An outcome, counted, never retried.
    #[error("fenced: the claim is no longer current")]
    Fenced,
    /// The database is another one than the operations were last known to belong to; adopted before anything is claimed.
    #[error("another incarnation of the database: nothing is claimed before it is adopted")]
    Incarnation,
    /// A record refused to write; the transaction was rolled back and the attempt failed.
    #[error("record: {0}")]
    Record(String),
    /// A setting is wrong; names it.
    #[error("setting {name}: {reason}")]
    Setting {
        /// Environment variable or builder call.
        name: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// A loop panicked: the process stopped claiming, drained, and must be started anew. The panic's own text is on
    /// standard error.
    #[error("{0} panicked")]
    Panicked(&'static str),
    /// Log, spans or metrics could not be set up.
    #[error(transparent)]
    Telemetry(#[from] TelemetryError),
    /// The broker refused.
    #[error("broker: {0}")]
    Broker(String),
    /// Serving the health pages failed.
    #[error("health listener: {0}")]
    Health(std::io::Error),
}

impl AsTransient for Error {
    fn is_transient(&self) -> bool {
        matches!(self, Self::Database(error) if error.is_transient())
    }
}
