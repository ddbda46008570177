//! Why an append failed.

use crate::run_tx::AsTransient;

/// An event or operation was not appended. Either way the caller's transaction is aborted and must be rolled back:
/// business state without its intent must not commit (obligation D1).
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// The contract is broken; repeating cannot help. The text names the field.
    #[error("refused: {0}")]
    Refused(String),
    /// The database failed.
    #[error("database: {0}")]
    Database(#[source] sqlx::Error),
}

impl From<sqlx::Error> for AppendError {
    fn from(error: sqlx::Error) -> Self {
        // 22xxx: a value the functions or jsonb refuse (also \u0000 and lone surrogates); 54000: a size limit;
        // 0A000: event types that are refused until payloads can be encrypted.
        let refused = error.as_database_error().filter(|error| {
            error.code().is_some_and(|code| code.starts_with("22") || code == "54000" || code == "0A000")
        });
        match refused {
            Some(error) => Self::Refused(error.message().to_owned()),
            None => Self::Database(error),
        }
    }
}

impl AsTransient for AppendError {
    fn is_transient(&self) -> bool {
        match self {
            Self::Refused(_) => false,
            Self::Database(error) => error.is_transient(),
        }
    }
}
