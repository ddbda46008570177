//! Provider budgets: one token bucket per provider account for the whole fleet, leased in slices.

use crate::Error;
use sqlx::PgPool;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Limits of a provider account, declared by the worker that calls it.
#[derive(Debug, Clone)]
pub struct ProviderBudget {
    /// Requests per second, fleet-wide.
    pub rate: f64,
    /// Bucket size in requests.
    pub burst: f64,
    /// Requests in flight, fleet-wide.
    pub concurrency: i32,
}

impl ProviderBudget {
    /// A bucket of one second's worth.
    #[must_use]
    pub fn per_second(rate: f64, concurrency: i32) -> Self {
        Self { rate, burst: rate, concurrency }
    }
}

/// Longest slice of calls: what a crashed process takes with it is at most this much of a second.
const SLICE_SECONDS: f64 = 0.25;
/// Longest wait before the bucket is asked again: a pause may have been lifted.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// A concurrency slice is leased for 5 s by the statement, so that little is lost with a killed process; it is renewed
/// well before while calls are in flight, and given back when none is: an idle process must not starve the others.
const RENEW_SLICE: Duration = Duration::from_secs(1);
/// Pause of who has calls but no share of the concurrency: others shrink to theirs within [`RENEW_SLICE`].
const NO_SHARE: i64 = 200;

/// The process's side of all its budgets.
#[derive(Debug, Clone)]
pub(crate) struct Budgets {
    pool: PgPool,
    process: Uuid,
    accounts: Arc<HashMap<String, Account>>,
}

#[derive(Debug)]
struct Account {
    limits: ProviderBudget,
    local: Mutex<Local>,
    in_flight: Arc<Semaphore>,
    /// Callers inside [`Budgets::take`].
    waiting: AtomicUsize,
}

impl Account {
    /// Permits whose call is in flight.
    fn used(&self, local: &Local) -> i32 {
        local.permits - i32::try_from(self.in_flight.available_permits()).unwrap_or(local.permits)
    }
}

#[derive(Debug)]
struct Local {
    calls: i32,
    /// Permits leased from the fleet's concurrency and put into the semaphore.
    permits: i32,
    asked_at: Option<Instant>,
}

impl Budgets {
    pub(crate) async fn declare(
        pool: PgPool,
        process: Uuid,
        limits: HashMap<String, ProviderBudget>,
    ) -> Result<Self, Error> {
        for (account, limit) in &limits {
            let usable = |value: f64| value.is_finite() && value > 0.0;
            if !usable(limit.rate) || !usable(limit.burst) || limit.concurrency < 1 {
                return Err(Error::Setting {
                    name: "budget",
                    reason: format!(
                        "of {account}: rate and burst must be positive and finite, concurrency at least 1; they are {}, {} and {}",
                        limit.rate, limit.burst, limit.concurrency
                    ),
                });
            }
            sqlx::query_file!("sql/budget_declare.sql", account, limit.rate, limit.burst, limit.concurrency)
                .execute(&pool)
                .await?;
        }
        let accounts = limits
            .into_iter()
            .map(|(name, limits)| {
                let local = Mutex::new(Local { calls: 0, permits: 0, asked_at: None });
                let (in_flight, waiting) = (Arc::new(Semaphore::new(0)), AtomicUsize::new(0));
                (name, Account { limits, local, in_flight, waiting })
            })
            .collect();
        Ok(Self { pool, process, accounts: Arc::new(accounts) })
    }

    /// Waits for one request's worth of budget. Accounts without declared limits are not limited.
    pub(crate) async fn take(&self, account: &str) -> Result<Option<OwnedSemaphorePermit>, Error> {
        let Some(budget) = self.accounts.get(account) else { return Ok(None) };
        let _waiting = Waiting::new(&budget.waiting);
        loop {
            let wait = {
                let mut local = budget.local.lock().await;
                let stale = local.asked_at.is_none_or(|at| at.elapsed() > RENEW_SLICE);
                if local.calls > 0 && !stale {
                    local.calls -= 1;
                    break;
                }
                self.ask(account, budget, &mut local, budget.limits.rate * SLICE_SECONDS).await?
            };
            if let Some(wait) = wait {
                metrics::counter!("backline_budget_waits_total", "provider" => account.to_owned())
                    .increment(1);
                tokio::time::sleep(wait).await;
            }
        }
        let permit = Arc::clone(&budget.in_flight).acquire_owned().await;
        Ok(permit.ok())
    }

    /// Asks the fleet's bucket for a slice; returns how long to wait when it gave nothing.
    async fn ask(
        &self,
        account: &str,
        budget: &Account,
        local: &mut Local,
        calls: f64,
    ) -> Result<Option<Duration>, Error> {
        let wanted = if local.calls > 0 { 0.0 } else { calls.max(1.0) };
        let got = sqlx::query_file!(
            "sql/budget_take.sql",
            account,
            self.process,
            wanted,
            budget.limits.concurrency,
            budget.used(local),
        )
        .fetch_optional(&self.pool)
        .await?;
        let Some(got) = got else {
            return Err(Error::Setting { name: "provider_budget", reason: format!("{account} was removed") });
        };
        local.calls = local.calls.max(0) + got.calls;
        local.asked_at = Some(Instant::now());
        let change = got.permits - local.permits;
        if change > 0 {
            budget.in_flight.add_permits(usize::try_from(change).unwrap_or(0));
            local.permits = got.permits;
        } else if change < 0 {
            let gone = budget.in_flight.forget_permits(usize::try_from(-change).unwrap_or(0));
            local.permits -= i32::try_from(gone).unwrap_or(0);
        }
        if local.calls > 0 && local.permits > 0 {
            return Ok(None);
        }
        let share = if local.permits > 0 { 0 } else { NO_SHARE };
        let millis = got.paused_ms.unwrap_or(0).max(got.next_ms).max(share).max(10);
        local.asked_at = None;
        Ok(Some(Duration::from_millis(u64::try_from(millis).unwrap_or(10)).min(ASK_AGAIN)))
    }

    /// Renews the slices of accounts with calls in flight and gives the others back, until `stop`.
    pub(crate) async fn keep(self, stop: CancellationToken) {
        loop {
            let stopped = tokio::time::timeout(RENEW_SLICE, stop.cancelled()).await.is_ok();
            for (account, budget) in self.accounts.iter() {
                if let Err(error) = self.tend(account, budget).await {
                    tracing::debug!(%error, "a slice of the budget runs out by itself");
                }
            }
            if stopped {
                return;
            }
        }
    }

    async fn tend(&self, account: &str, budget: &Account) -> Result<(), Error> {
        let mut local = budget.local.lock().await;
        if budget.waiting.load(Ordering::Acquire) > 0 || budget.used(&local) > 0 {
            let asked_at = local.asked_at;
            if asked_at.is_none_or(|at| at.elapsed() >= RENEW_SLICE / 2) {
                let kept = local.calls;
                // Only the concurrency: calls are asked for by who makes them.
                local.calls = kept.max(1);
                let asked = self.ask(account, budget, &mut local, 0.0).await;
                local.calls = kept;
                asked?;
            }
            return Ok(());
        }
        if local.permits > 0 {
            let gone = budget.in_flight.forget_permits(usize::try_from(local.permits).unwrap_or(0));
            local.permits -= i32::try_from(gone).unwrap_or(0);
            // The next call asks first.
            local.asked_at = None;
            sqlx::query_file!("sql/budget_return.sql", account, self.process).execute(&self.pool).await?;
        }
        Ok(())
    }

    /// The provider throttled us: the whole fleet slows down, and waits out `retry_after` if it named one.
    pub(crate) async fn throttled(&self, account: &str, retry_after: Duration) -> Result<(), Error> {
        metrics::counter!("backline_provider_throttled_total", "provider" => account.to_owned()).increment(1);
        let Some(budget) = self.accounts.get(account) else { return Ok(()) };
        budget.local.lock().await.calls = 0;
        let millis = i64::try_from(retry_after.as_millis()).unwrap_or(i64::MAX);
        sqlx::query_file!("sql/budget_throttled.sql", account, millis).execute(&self.pool).await?;
        Ok(())
    }
}

/// Counts a caller for as long as it waits.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
