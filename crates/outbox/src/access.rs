//! The way to the database: what an error on it means, in the same words from every program.

use crate::{AsTransient, SchemaError, check_schema};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{Connection, PgPool};
use std::fmt;
use std::time::Duration;

/// First pause of a start that waits for its database, and the longest: a database that comes back is met soon, and one
/// that stays away costs a connection attempt and a log line in so many seconds.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Why there is no way to the database.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The setting cannot be read. It is not quoted: it holds a password.
    #[error(
        "DATABASE_URL is not a PostgreSQL connection URL, such as postgres://user:password@host:5432/name"
    )]
    Url,
    /// The server refused, or did not answer.
    #[error("DATABASE_URL ({place}): {}", Explained(.error))]
    Refused {
        /// Host, port and name of the database, without credentials.
        place: String,
        /// What it said.
        error: sqlx::Error,
    },
    /// The way is there, and leads to a schema that is not this build's.
    #[error(transparent)]
    Schema(#[from] SchemaError),
}

impl AccessError {
    /// Whether waiting may help: an outage. Everything else is for whoever sets up the program.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Url => false,
            Self::Refused { error, .. } | Self::Schema(SchemaError::Database(error)) => is_outage(error),
            Self::Schema(_) => false,
        }
    }
}

/// Whether an error is one of the way to the database that passes by itself: nobody there, or nobody yet.
#[must_use]
pub fn is_outage(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::PoolTimedOut) || (error.is_transient() && !from_pooler(error))
}

/// An error with what to do about it, where the setting that it comes from is known.
#[derive(Debug)]
pub struct Explained<'a>(pub &'a sqlx::Error);

impl fmt::Display for Explained<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match remedy(self.0) {
            Some(remedy) => write!(f, "{}; {remedy}", self.0),
            None => write!(f, "{}", self.0),
        }
    }
}

/// What to do about an error that comes from the way to the database.
#[must_use]
pub fn remedy(error: &sqlx::Error) -> Option<&'static str> {
    if from_pooler(error) {
        return Some(
            "DATABASE_URL leads to a transaction pooler: let it lead to PostgreSQL itself or to a pooler in session mode. \
             BACKLINE_POLLING_ONLY=true (workers) and BACKLINE_RELAY_DOORBELL=false (relay) do without start-up parameters \
             and LISTEN; they do not do without prepared statements, which PgBouncer keeps from 1.21 on with \
             max_prepared_statements above 0",
        );
    }
    let code = error.as_database_error()?.code()?;
    Some(match code.as_ref() {
        "28P01" | "28000" => {
            "see that DATABASE_URL has the right user and password, and that the server lets them in from here"
        }
        "3D000" => "see that DATABASE_URL names the right server and database",
        "42501" => {
            "the user of DATABASE_URL lacks a privilege: use a member of the role that `backline migrate` made for this program"
        }
        "25006" => "DATABASE_URL leads to a server that is read-only: a standby, or a failover under way",
        _ => return None,
    })
}

/// What only a pooler in transaction mode says: PgBouncer refuses start-up parameters it does not keep track of, and
/// somebody else's session has a prepared statement of the same name (42P05) or none (26000).
fn from_pooler(error: &sqlx::Error) -> bool {
    let Some(error) = error.as_database_error() else { return false };
    match error.code().as_deref() {
        Some("42P05" | "26000") => true,
        // Its code is that of any breach of the protocol.
        Some("08P01") => error.message().contains("startup parameter"),
        _ => false,
    }
}

/// What `DATABASE_URL` says.
///
/// # Errors
/// It is no connection URL.
pub fn database_options(url: &str) -> Result<PgConnectOptions, AccessError> {
    // The client would take any scheme, also the host's name in front of its port, and go to its default host.
    if !["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme)) {
        return Err(AccessError::Url);
    }
    let options: PgConnectOptions = url.parse().map_err(|_| AccessError::Url)?;
    // The client's own default, which poolers refuse. No server since PostgreSQL 12 needs it to write floats in full.
    Ok(options.extra_float_digits(None))
}

/// Proves the way with one statement on a connection of its own. A pool would hide what a refused connection says behind
/// the wait for it.
///
/// # Errors
/// What the server said, or that nothing came within `limit`.
pub async fn reach(options: &PgConnectOptions, limit: Duration) -> Result<(), AccessError> {
    let look = async {
        let mut connection = PgConnection::connect_with(options).await?;
        // Prepared in one transaction and run in another: a pooler that does not keep statements shows here.
        sqlx::query("select 1").execute(&mut connection).await?;
        connection.close().await
    };
    let answer = tokio::time::timeout(limit, look).await;
    let silent = |_| Err(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into()));
    answer.unwrap_or_else(silent).map_err(|error| AccessError::Refused { place: place(options), error })
}

/// Waits until the database can be reached and answers, and refuses what waiting does not mend: a wrong setting, or a
/// schema that is not this build's. `waiting` hears of every outage.
///
/// # Errors
/// The first that does not pass by itself.
pub async fn await_database(
    pool: &PgPool,
    limit: Duration,
    mut waiting: impl FnMut(&AccessError),
) -> Result<(), AccessError> {
    let mut pauses = Pauses::default();
    loop {
        let options = pool.connect_options();
        let looked = match reach(&options, limit).await {
            Ok(()) => check_schema(pool).await.map_err(AccessError::from),
            refused => refused,
        };
        match looked {
            Err(error) if error.may_pass() => {
                tracing::warn!(%error, "waiting for the database");
                waiting(&error);
            }
            looked => return looked,
        }
        pauses.next().await;
    }
}

/// Growing pauses between tries to start, with jitter: a fleet that waits for one server does not come at once.
#[derive(Debug)]
pub struct Pauses(Duration);

impl Default for Pauses {
    fn default() -> Self {
        Self(FIRST_PAUSE)
    }
}

impl Pauses {
    /// Waits out the next one.
    pub async fn next(&mut self) {
        let spread = rand::random_range(0.5..1.0);
        tokio::time::sleep(self.0.mul_f64(spread)).await;
        self.0 = (self.0 * 2).min(LONGEST_PAUSE);
    }
}

/// For people: where a connection goes, and nothing of who goes there.
fn place(options: &PgConnectOptions) -> String {
    let name = options.get_database().unwrap_or("the user's own");
    match options.get_socket() {
        Some(socket) => format!("{}, database {name}", socket.display()),
        None => format!("{}:{}, database {name}", options.get_host(), options.get_port()),
    }
}

#[cfg(test)]
mod tests {
    use super::{database_options, reach};
    use std::time::Duration;

    #[tokio::test]
    async fn an_error_names_the_setting_and_the_place_and_never_the_password() -> anyhow::Result<()> {
        let unreadable = database_options("db.example:5432/canary").err().map(|error| error.to_string());
        assert!(unreadable.is_some_and(|text| text.starts_with("DATABASE_URL") && !text.contains("canary")));
        // Port 1 is nobody's.
        let options = database_options("postgres://ann:canary@127.0.0.1:1/books")?;
        let Err(error) = reach(&options, Duration::from_secs(5)).await else { anyhow::bail!("reached") };
        assert!(error.may_pass());
        let text = format!("{error} {error:?}");
        assert!(text.starts_with("DATABASE_URL (127.0.0.1:1, database books)"), "{text}");
        assert!(!text.contains("canary") && !text.contains("ann"), "{text}");
        Ok(())
    }
}
