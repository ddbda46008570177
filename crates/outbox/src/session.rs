//! A connection that is kept over several transactions.

use sqlx::pool::PoolConnection;
use sqlx::{PgConnection, PgPool, Postgres};

/// A connection of a pool, kept by who runs one transaction after the other: handing it back costs a round trip each
/// time, because the pool asks a returned connection whether it still answers.
///
/// Others wait for a connection meanwhile, so it goes back after [`Session::TRANSACTIONS`]. After each transaction it is
/// kept only by [`keep`](Self::keep): one that did not commit may have lost it.
#[derive(Debug)]
pub struct Session {
    pool: PgPool,
    connection: Option<PoolConnection<Postgres>>,
    /// Transactions begun on the connection.
    begun: u32,
    /// The last one committed.
    keep: bool,
}

impl Session {
    /// Transactions before the connection goes back: the round trip becomes a sixteenth, and who waits for a connection
    /// waits for some 20 ms of short transactions.
    pub const TRANSACTIONS: u32 = 16;

    /// No connection yet.
    #[must_use]
    pub fn new(pool: PgPool) -> Self {
        Self { pool, connection: None, begun: 0, keep: false }
    }

    /// The transaction committed: the next one may begin on the same connection.
    pub fn keep(&mut self) {
        self.keep = true;
    }

    /// Hands the connection back: before anything else of the pool is waited for, or when a transaction failed.
    pub fn release(&mut self) {
        self.connection = None;
        self.begun = 0;
    }

    /// The kept connection, or a new one.
    ///
    /// # Errors
    /// As the pool's.
    pub(crate) async fn connection(&mut self) -> Result<&mut PgConnection, sqlx::Error> {
        if !std::mem::take(&mut self.keep) || self.begun >= Self::TRANSACTIONS {
            self.release();
        }
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.pool.acquire().await?,
        };
        self.begun += 1;
        Ok(self.connection.insert(connection))
    }
}
