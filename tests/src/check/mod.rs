//! The one judge of all scenarios: what must be true whatever was broken.
//!
//! The numbers are those of the list of invariants that every run is checked against; each is one function that asks
//! the database, the broker's log or the providers' journals, never our own flags alone. A scenario says what it
//! expects to be left over ([`Expected`]); everything else is a violation.

mod broken;
mod broker;
mod calls;
mod conversations;
mod database;
pub(crate) mod metrics;
mod pace;
mod resources;
mod secrets;

pub use broken::{Broken, promised};
pub use calls::{Seen, seen};
pub use conversations::{conversation_violations, conversations};
pub use pace::most_in_flight;
pub use resources::memory;
pub use secrets::CANARY;

use crate::{Stack, TimedOut, eventually};
use uuid::Uuid;

/// What a scenario expects beyond "everything is done".
#[derive(Debug, Clone, Default)]
pub struct Expected {
    /// Events or operations whose transaction committed (invariant 1).
    pub committed: Vec<Uuid>,
    /// Ids whose transaction rolled back (invariant 2).
    pub rolled_back: Vec<Uuid>,
    /// Operations that stay open for a person: `manual` or `dead`.
    pub stuck: i64,
    /// Outbox entries that stay parked with a reason.
    pub parked: i64,
    /// Surplus effects of kinds without a key at the provider (invariant 6): allowed only where declared.
    pub possible_duplicates: usize,
    /// Requests that wait in intake for a capable build.
    pub waiting: i64,
    /// Events that another broker confirmed, before this stack: this one's log does not know them (invariant 4).
    pub published_before: Vec<Uuid>,
    /// How often recovery must have been exercised at least (invariant 28): evidence rows, refused stale writes or
    /// republications. Zero only for scenarios without a fault.
    pub recoveries: i64,
}

impl Expected {
    /// Nothing is left over, and at least one recovery happened.
    #[must_use]
    pub fn recovered() -> Expected {
        Expected { recoveries: 1, ..Expected::default() }
    }
}

/// Waits until nothing moves any more, then checks every invariant.
///
/// # Errors
/// Work does not come to rest, or an invariant does not hold: all violations are named.
pub async fn settled(stack: &Stack, expected: &Expected) -> anyhow::Result<()> {
    let mut last = String::new();
    let rest = eventually("everything to come to rest", async || {
        last = database::unrest(stack, expected).await?;
        Ok(last.is_empty())
    })
    .await;
    if let Err(error) = rest {
        let late = error.downcast::<TimedOut>()?;
        promised(false, || format!("{late}: {last}"))?;
    }
    invariants(stack, expected).await
}

/// Checks every invariant now.
///
/// # Errors
/// As [`settled`].
pub async fn invariants(stack: &Stack, expected: &Expected) -> anyhow::Result<()> {
    let mut violations = database::check(stack, expected).await?;
    violations.extend(broker::check(stack, expected).await?);
    violations.extend(calls::check(stack, expected).await?);
    violations.extend(pace::check(stack).await?);
    violations.extend(resources::check(stack)?);
    violations.extend(secrets::check(stack).await?);
    violations.extend(metrics::check(stack).await?);
    promised(violations.is_empty(), || format!("violated invariants:\n{}", violations.join("\n")))
}
