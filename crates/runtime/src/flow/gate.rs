//! The gate of an attempt's requests: each costs one unit of its account's budget.

use crate::flow::Budgets;
use backline_failure::{CallDeadline, Entering, Failure, Gate, Permit};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;

/// How often a wait looks whether its attempt may still send: a lease can be lost meanwhile.
const LOOK: Duration = Duration::from_secs(1);

/// Between one attempt and its account's budget. The first request uses what the attempt waited for before it began;
/// every further one waits for its own, and holds it only while it is under way.
pub(crate) struct RequestGate {
    budgets: Budgets,
    account: String,
    deadline: CallDeadline,
    longest_wish: Duration,
    first: Mutex<Option<Permit>>,
    /// The fleet knows what this attempt's failure may be about.
    told: AtomicBool,
}

impl RequestGate {
    /// `first` is the attempt's own permit, none where nothing limits; no wish to wait is longer than `longest_wish`.
    pub(crate) fn new(
        budgets: Budgets,
        account: &str,
        deadline: CallDeadline,
        longest_wish: Duration,
        first: Option<OwnedSemaphorePermit>,
    ) -> Self {
        let first = first.map_or_else(Permit::free, Permit::holding);
        Self {
            budgets,
            account: account.to_owned(),
            deadline,
            longest_wish,
            first: Mutex::new(Some(first)),
            told: AtomicBool::new(false),
        }
    }

    /// The attempt is over: what it did not use is the next one's.
    pub(crate) fn close(&self) {
        drop(self.unused());
    }

    /// Whether the fleet need not be told of the failure that ends the attempt.
    pub(crate) fn told(&self) -> bool {
        self.told.load(Ordering::Acquire)
    }

    fn unused(&self) -> Option<Permit> {
        self.first.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// No attempt is spent on a wait, and nobody else is slowed down because of it.
    fn refused(&self, code: &'static str) -> Failure {
        self.told.store(true, Ordering::Release);
        Failure::throttled(code).with_detail("the request waited for the provider's budget and was not sent")
    }

    async fn passed(&self) {
        while !self.deadline.passed() {
            tokio::time::sleep(self.deadline.remaining().min(LOOK)).await;
        }
    }
}

impl Gate for RequestGate {
    fn enter(&self) -> Entering<'_, Result<Permit, Failure>> {
        Box::pin(async move {
            if let Some(first) = self.unused() {
                return Ok(first);
            }
            tokio::select! {
                biased;
                () = self.passed() => Err(self.refused("budget_waited_too_long")),
                taken = self.budgets.take(&self.account) => match taken {
                    Ok(permit) => Ok(permit.map_or_else(Permit::free, Permit::holding)),
                    Err(error) => {
                        tracing::warn!(%error, "no provider budget");
                        Err(self.refused("budget_unreachable"))
                    }
                },
            }
        })
    }

    fn slow_down(&self, retry_after: Option<Duration>) -> Entering<'_, ()> {
        Box::pin(async move {
            let wait = retry_after.unwrap_or_default().min(self.longest_wish);
            match self.budgets.throttled(&self.account, wait).await {
                Ok(()) => self.told.store(true, Ordering::Release),
                // The end of the attempt tries again.
                Err(error) => tracing::warn!(%error, "the fleet could not be told"),
            }
        })
    }
}

impl fmt::Debug for RequestGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestGate").field("account", &self.account).finish_non_exhaustive()
    }
}
