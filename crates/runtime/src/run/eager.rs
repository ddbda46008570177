//! Sooner, not elsewhere: an application that runs the workload in its own process tells it about commits and waits,
//! for a bounded time, for the end of an operation.
//!
//! Nothing is executed for the caller, and nothing rests on this process: what was committed is found by every claim
//! loop in any case (obligations D8a and G11).

use crate::run::config::WorkloadConfig;
use crate::transition::State;
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use uuid::Uuid;

/// Between two looks at what is waited for. Providers answer in tens of milliseconds and more, and however many wait,
/// a look is one statement.
const LOOK: Duration = Duration::from_millis(10);

/// What is known of an operation.
#[derive(Debug, Clone, PartialEq)]
pub enum Status {
    /// It ended.
    Ended {
        /// Generation that ended; 1 for commands and events.
        generation: i64,
        /// One of the final states.
        outcome: State,
        /// Stable code of the outcome, where it has one.
        code: Option<String>,
        /// What the provider returned, after `succeeded`.
        output: Option<serde_json::Value>,
    },
    /// It had not ended. It goes on all the same; `backline.operation_status` tells what became of it later.
    Open {
        /// `requested` or a state, as last seen. `None`: no committed request was seen in time, perhaps because the
        /// database did not answer in time.
        state: Option<String>,
        /// Stable code of the last failure, while it waits to be tried again.
        code: Option<String>,
    },
}

impl Status {
    const UNSEEN: Self = Self::Open { state: None, code: None };

    /// Nothing that this process could wait for is left: it ended, or only a person decides.
    fn rests(&self) -> bool {
        match self {
            Self::Ended { .. } => true,
            Self::Open { state, .. } => matches!(state.as_deref(), Some("manual" | "dead")),
        }
    }
}

/// Handle of an application on the workload in its own process: cheap to clone, made by
/// [`Workload::eager`](crate::Workload::eager) before the workload runs.
///
/// Without a handle nothing of this exists, and a handle that is not used costs nothing.
#[derive(Debug, Clone)]
pub struct Eager {
    kick: Arc<Notify>,
    waiting: Arc<Waiting>,
}

impl Eager {
    pub(crate) fn new(kick: Arc<Notify>, config: &WorkloadConfig, name: &str) -> Self {
        let waiting = Waiting {
            url: config.database_url.clone(),
            application: format!("backline-{name}-eager"),
            acquire_timeout: config.capacity.acquire_timeout,
            pool: OnceLock::new(),
            seats: Mutex::default(),
        };
        Self { kick, waiting: Arc::new(waiting) }
    }

    /// Intents were committed: the claim loop looks at once instead of at its next poll or notification.
    ///
    /// To be called after COMMIT was answered. Costs the caller nothing: no I/O, no waiting. It is a hint like the
    /// doorbell's: losing it, by a crash right before or after, changes nothing, and many are answered by one look.
    pub fn committed(&self) {
        self.kick.notify_one();
    }

    /// Waits until `operation` ended, at most `within`, and says what is known of it then. It comes back earlier when
    /// only a person can decide (`manual`, `dead`), and never with an error: what is slow, or whose database does not
    /// answer, is [`Status::Open`].
    ///
    /// Dropping the future stops the waiting and nothing else. What it costs: the caller's own answer is later by the
    /// claim, the provider's call, the finish and up to 10 ms between two looks, or by all of `within`; while somebody
    /// waits, this process asks the database 100 times per second, on one connection of its own.
    pub async fn outcome(&self, operation: Uuid, within: Duration) -> Status {
        let (tell, mut told) = watch::channel(Status::UNSEEN);
        self.waiting.sit(operation, tell);
        drop(tokio::time::timeout(within, told.wait_for(Status::rests)).await);
        told.borrow().clone()
    }
}

/// Everybody who waits for an operation's end in this process, and the one task that asks for them.
#[derive(Debug)]
struct Waiting {
    url: String,
    application: String,
    acquire_timeout: Duration,
    /// Made by the first who waits; `None` when the URL is none, which stops the workload at its start.
    pool: OnceLock<Option<PgPool>>,
    seats: Mutex<Seats>,
}

#[derive(Debug, Default)]
struct Seats {
    taken: Vec<(Uuid, watch::Sender<Status>)>,
    /// A task is asking for them.
    asking: bool,
}

impl Waiting {
    fn sit(self: &Arc<Self>, operation: Uuid, tell: watch::Sender<Status>) {
        let mut seats = self.seats();
        seats.taken.push((operation, tell));
        if !seats.asking {
            seats.asking = true;
            tokio::spawn(Asking { waiting: Arc::clone(self), ended: false }.ask());
        }
    }

    fn pool(&self) -> Option<&PgPool> {
        let connect = || {
            let options = backline_outbox::database_options(&self.url).ok()?;
            let pool = PgPoolOptions::new().max_connections(1).acquire_timeout(self.acquire_timeout);
            Some(pool.connect_lazy_with(options.application_name(&self.application)))
        };
        self.pool.get_or_init(connect).as_ref()
    }

    fn seats(&self) -> MutexGuard<'_, Seats> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Frees the seats of those who left, and names what the others wait for.
    fn operations(&self) -> Vec<Uuid> {
        let mut seats = self.seats();
        seats.taken.retain(|(_, tell)| !tell.is_closed());
        let operations: BTreeSet<Uuid> = seats.taken.iter().map(|(operation, _)| *operation).collect();
        // Under the same lock as the look around: whoever sits down from here on starts another task.
        seats.asking = !operations.is_empty();
        operations.into_iter().collect()
    }

    fn tell(&self, found: &HashMap<Uuid, Status>) {
        for (operation, tell) in &self.seats().taken {
            if let Some(status) = found.get(operation) {
                tell.send_if_modified(|known| {
                    let news = known != status;
                    if news {
                        known.clone_from(status);
                    }
                    news
                });
            }
        }
    }
}

/// The task that asks. A runtime that is shut down drops it in the middle; the next who sits down starts another then.
struct Asking {
    waiting: Arc<Waiting>,
    ended: bool,
}

impl Drop for Asking {
    fn drop(&mut self) {
        if !self.ended {
            self.waiting.seats().asking = false;
        }
    }
}

impl Asking {
    /// Asks while anybody waits.
    async fn ask(mut self) {
        loop {
            let operations = self.waiting.operations();
            if operations.is_empty() {
                self.ended = true;
                return;
            }
            if let Some(pool) = self.waiting.pool() {
                match look(pool, &operations).await {
                    Ok(found) => self.waiting.tell(&found),
                    Err(error) => tracing::debug!(%error, "nobody who waits for an operation was answered"),
                }
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

async fn look(pool: &PgPool, operations: &[Uuid]) -> Result<HashMap<Uuid, Status>, sqlx::Error> {
    let rows = sqlx::query_file!("sql/operations_ended.sql", operations).fetch_all(pool).await?;
    Ok(rows
        .into_iter()
        .map(|row| {
            let outcome = row.outcome.as_deref().and_then(final_state).filter(|_| !row.asked);
            let status = match (outcome, row.generation) {
                (Some(outcome), Some(generation)) => Status::Ended {
                    generation,
                    outcome,
                    code: row.code,
                    output: row.output.and_then(|text| serde_json::from_str(&text).ok()),
                },
                _ => {
                    let state = if row.state == "finished" { "requested".to_owned() } else { row.state };
                    Status::Open { state: Some(state), code: row.code }
                }
            };
            (row.id, status)
        })
        .collect())
}

fn final_state(name: &str) -> Option<State> {
    let states = [
        State::Succeeded,
        State::Rejected,
        State::Obsolete,
        State::Cancelled,
        State::Expired,
        State::Discarded,
        State::Superseded,
    ];
    states.into_iter().find(|state| state.as_str() == name)
}
