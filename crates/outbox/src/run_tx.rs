//! The one place that begins and commits transactions: retries, crash points and the doubt of a lost COMMIT reply.
//!
//! A body may run several times, so it must decide the same thing from the same inputs: ids come from outside, and
//! locks and constraints tell a repetition that its first run was committed (architecture, "Ambiguous COMMIT").

use crate::Session;
use sqlx::{Connection, PgConnection, PgPool, Postgres, Transaction};
use std::ops::ControlFlow;
use std::time::Duration;
use tokio::time::Instant;

/// Name of a transaction, with the crash sites derived from it. Make one with [`tx_name!`](crate::tx_name).
#[derive(Debug, Clone, Copy)]
pub struct TxName {
    /// Label of metrics and logs.
    pub name: &'static str,
    /// Crash site before BEGIN.
    pub before_begin: &'static str,
    /// Crash site after BEGIN.
    pub after_begin: &'static str,
    /// Crash site before COMMIT is sent.
    pub before_commit: &'static str,
    /// Crash site after COMMIT was answered.
    pub after_commit: &'static str,
}

/// Builds a [`TxName`] from a literal, for example `tx_name!("claim")`.
#[macro_export]
macro_rules! tx_name {
    ($name:literal) => {
        $crate::TxName {
            name: $name,
            before_begin: concat!("tx.", $name, ".begin.before"),
            after_begin: concat!("tx.", $name, ".begin.after"),
            before_commit: concat!("tx.", $name, ".commit.before"),
            after_commit: concat!("tx.", $name, ".commit.after"),
        }
    };
}

/// Runs the body in one transaction and commits it: `run_tx!(source, "name", |tx| async { …; Ok::<_, E>(value) })`.
///
/// `tx` is a `&mut PgConnection`. Serialization failures (40001), deadlocks (40P01) and lost connections repeat the
/// whole body, a COMMIT whose reply was lost included: the repetition meets its own rows and must take that as
/// success. A macro, because a closure's borrowed future cannot be proved `Send` for a spawned caller.
///
/// Evaluates to `Result<T, E>` with the body's error type, which must implement `From<sqlx::Error>` and
/// [`AsTransient`].
#[macro_export]
macro_rules! run_tx {
    ($source:expr, $name:literal, |$tx:ident| $body:expr) => {{
        use $crate::BeginTx as _;
        let mut repetitions = $crate::Repetitions::new($name);
        loop {
            let result = 'once: {
                let mut transaction = match ($source).begin_tx($crate::tx_name!($name)).await {
                    Ok(transaction) => transaction,
                    Err(error) => break 'once Err(error.into()),
                };
                let value = {
                    let $tx: &mut $crate::PgConnection = transaction.connection();
                    match $body.await {
                        Ok(value) => value,
                        Err(error) => break 'once Err(error),
                    }
                };
                match transaction.commit().await {
                    Ok(()) => Ok(value),
                    Err(error) => Err(error.into()),
                }
            };
            match repetitions.after(result).await {
                std::ops::ControlFlow::Break(result) => break result,
                std::ops::ControlFlow::Continue(()) => {}
            }
        }
    }};
}

/// Where `run_tx!` begins: a pool, or a [`Session`] that keeps its connection. Only `run_tx!` needs it in scope.
pub trait BeginTx {
    /// Begins on a connection of the pool.
    ///
    /// # Errors
    /// The database's, a pool that has no free connection in time included.
    fn begin_tx(&self, name: TxName) -> impl Future<Output = Result<Tx<'static>, sqlx::Error>> + Send;
}

impl BeginTx for PgPool {
    #[expect(clippy::disallowed_methods, reason = "the one home of begin and commit")]
    async fn begin_tx(&self, name: TxName) -> Result<Tx<'static>, sqlx::Error> {
        backline_crash_point::reach(name.before_begin);
        let inner = self.begin().await?;
        backline_crash_point::reach(name.after_begin);
        Ok(Tx { inner, name })
    }
}

impl Session {
    /// Begins on the kept connection, or on a new one if the last transaction was not kept.
    ///
    /// # Errors
    /// As [`BeginTx::begin_tx`].
    #[expect(clippy::disallowed_methods, reason = "the one home of begin and commit")]
    pub async fn begin_tx(&mut self, name: TxName) -> Result<Tx<'_>, sqlx::Error> {
        backline_crash_point::reach(name.before_begin);
        let inner = self.connection().await?.begin().await?;
        backline_crash_point::reach(name.after_begin);
        Ok(Tx { inner, name })
    }
}

/// An open transaction; dropped without [`commit`](Tx::commit) it rolls back. Only `run_tx!` makes one.
#[derive(Debug)]
pub struct Tx<'c> {
    inner: Transaction<'c, Postgres>,
    name: TxName,
}

impl Tx<'_> {
    /// The connection that statements run on.
    pub fn connection(&mut self) -> &mut PgConnection {
        &mut self.inner
    }

    /// Commits.
    ///
    /// # Errors
    /// The database's; a connection lost here leaves the outcome in doubt, which `run_tx!` settles by repeating.
    #[expect(clippy::disallowed_methods, reason = "the one home of begin and commit")]
    pub async fn commit(self) -> Result<(), sqlx::Error> {
        backline_crash_point::reach(self.name.before_commit);
        self.inner.commit().await?;
        backline_crash_point::reach(self.name.after_commit);
        Ok(())
    }
}

/// Whole-transaction repetitions after a serialization failure, a deadlock or a lost connection. Five cover every
/// lock pile-up seen under load; a longer outage belongs to the caller's own loop, which backs off visibly.
const LIMIT: u32 = 5;

/// Counts the repetitions of one `run_tx!`.
#[derive(Debug)]
pub struct Repetitions {
    name: &'static str,
    done: u32,
    started: Instant,
}

impl Repetitions {
    /// None so far.
    #[must_use]
    pub fn new(name: &'static str) -> Self {
        Self { name, done: 0, started: Instant::now() }
    }

    /// Decides whether the transaction that ended with `result` is repeated, and waits out the pause before it.
    pub async fn after<T, E: AsTransient>(&mut self, result: Result<T, E>) -> ControlFlow<Result<T, E>> {
        match result {
            Err(error) if self.done < LIMIT && error.is_transient() => {
                self.done += 1;
                metrics::counter!("backline_tx_retries_total", "tx" => self.name).increment(1);
                tracing::debug!(tx = self.name, repetition = self.done, "transaction is repeated");
                tokio::time::sleep(pause(self.done)).await;
                ControlFlow::Continue(())
            }
            other => {
                let outcome = if other.is_ok() { "committed" } else { "failed" };
                metrics::histogram!("backline_tx_seconds", "tx" => self.name, "outcome" => outcome)
                    .record(self.started.elapsed().as_secs_f64());
                ControlFlow::Break(other)
            }
        }
    }
}

/// Deadlocked parties must not meet again at the same instant.
fn pause(repetition: u32) -> Duration {
    let spread = rand::random_range(0.5..1.5);
    Duration::from_millis(10 * 2_u64.pow(repetition.min(7))).mul_f64(spread)
}

/// Whether repeating the whole transaction may help.
pub trait AsTransient {
    /// True for 40001, 40P01 and for connections that were lost or refused.
    fn is_transient(&self) -> bool;
}

impl AsTransient for sqlx::Error {
    fn is_transient(&self) -> bool {
        match self {
            sqlx::Error::Database(error) => error.code().is_some_and(|code| {
                matches!(
                    code.as_ref(),
                    // 25P03: this process was frozen inside a transaction for longer than its lease.
                    "40001" | "40P01" | "57P01" | "57P02" | "57P03" | "25006" | "25P03" | "53300"
                ) || code.starts_with("08")
            }),
            sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed => true,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    /// Transactions run inside spawned tasks, with borrowed inputs: this must keep compiling.
    #[tokio::test]
    async fn a_transaction_future_can_be_spawned() -> Result<(), sqlx::Error> {
        fn spawnable<T: Send>(_: &T) {}
        let pool = sqlx::PgPool::connect_lazy("postgres://localhost/none")?;
        let ids = Arc::new(vec![1_i64]);
        let future = async move {
            let ids = &ids;
            crate::run_tx!(&pool, "example", |tx| async {
                sqlx::query("select $1").bind(&ids[..]).execute(&mut *tx).await?;
                Ok::<_, sqlx::Error>(ids.len())
            })
        };
        spawnable(&future);
        Ok(())
    }
}
