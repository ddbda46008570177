use std::time::Duration;

use crate::backoff::share;
use crate::{Class, Failure, Mode, backoff};

/// How patient a kind of operation is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Counted attempts before the operation stops by itself; 0 and 1 both mean a single attempt.
    pub max_attempts: u32,
    /// The first wait, doubled per counted attempt.
    pub backoff_base: Duration,
    /// The longest wait of our own choosing.
    pub backoff_cap: Duration,
    /// The longest wait a provider may ask for; beyond it the header is taken for a mistake.
    pub retry_after_cap: Duration,
    /// Whether a refusal stored under the submission's key may start the next submission instead of being final.
    pub next_submission_after_spent_key: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            // With the waits below 20 attempts span four to eight hours: longer than most provider incidents, and well
            // inside the 24 h for which Stripe, the strictest of our providers, remembers a key.
            max_attempts: 20,
            // A second lets a restarted backend come back; less only adds load.
            backoff_base: Duration::from_secs(1),
            // An hour: after it a recovered provider is noticed soon enough for work that already waited hours.
            backoff_cap: Duration::from_secs(60 * 60),
            // Providers announce maintenance in hours; a longer wait would outlive the key's window.
            retry_after_cap: Duration::from_secs(6 * 60 * 60),
            // Presenting a refused instruction again is a business decision, so a kind has to ask for it.
            next_submission_after_spent_key: false,
        }
    }
}

/// What happens to the operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Ready again at its due time.
    Retry {
        /// From the database's now.
        delay: Duration,
        /// Whether this attempt counts against the policy.
        counted: bool,
        /// Whether the next attempt is a new submission, with a new key.
        next_submission: bool,
    },
    /// Final: refused by the provider.
    Reject,
    /// Final: no longer wanted.
    Obsolete,
    /// Nobody may submit again before it is resolved.
    Unknown,
    /// The provider account is parked; the operation is ready again after it, and no attempt is spent.
    Block {
        /// When the account may be probed again.
        delay: Duration,
    },
    /// Final until an operator decides: poison or exhausted.
    Dead,
}

/// Decides what a failure means for its operation: the only place that does.
///
/// `attempt` counts the operation's attempts from 1, this one included. `may_have_left` says that a request of this
/// submission may have reached the provider. `jitter` is in `[0, 1)`.
///
/// Invariants, each held by a property test:
/// * throttled and blocked spend no attempt and never end an operation;
/// * a command or event that may have left is never dead, and its unknown stays unknown whatever the attempt;
/// * a new submission starts only after a refusal that the provider stored under the old key;
/// * a delay is at least the provider's capped wish, and at most the larger cap plus `backoff_base` of jitter.
#[must_use]
pub fn decide(
    failure: &Failure,
    attempt: u32,
    may_have_left: bool,
    mode: Mode,
    policy: &Policy,
    jitter: f64,
) -> Decision {
    let exhausted = attempt >= policy.max_attempts;
    // A reconcile operation rereads desired state, so repeating what may have left converges; the others may not.
    let repeatable = mode == Mode::Reconcile;
    let retry = |counted, next_submission, step| Decision::Retry {
        delay: delay(failure, step, policy, jitter),
        counted,
        next_submission,
    };
    match failure.class {
        Class::Rejected => Decision::Reject,
        Class::Obsolete => Decision::Obsolete,
        // Not the exponential wait: nothing about a refused account changes within seconds.
        Class::Blocked => Decision::Block { delay: delay(failure, u32::MAX, policy, jitter) },
        // The stored refusal proves that this submission did not act, so its end is a refusal, never unknown.
        Class::Transient | Class::Throttled if failure.key_spent => {
            let counted = failure.class == Class::Transient;
            if policy.next_submission_after_spent_key && !(counted && exhausted) {
                retry(counted, true, attempt)
            } else {
                Decision::Reject
            }
        }
        // The attempt number does not grow while throttled, so the wait starts two doublings up instead.
        Class::Throttled => retry(false, false, attempt.saturating_add(2)),
        Class::Transient if !exhausted => retry(true, false, attempt),
        Class::Transient if may_have_left && !repeatable => Decision::Unknown,
        Class::Transient => Decision::Dead,
        Class::Unknown if !repeatable => Decision::Unknown,
        Class::Poison if may_have_left && !repeatable => Decision::Unknown,
        Class::Poison if !may_have_left => Decision::Dead,
        Class::Unknown | Class::Poison if !exhausted => retry(true, false, attempt),
        Class::Unknown | Class::Poison => Decision::Dead,
    }
}

fn delay(failure: &Failure, step: u32, policy: &Policy, jitter: f64) -> Duration {
    let ours = backoff(step, policy.backoff_base, policy.backoff_cap, jitter);
    match failure.retry_after {
        None => ours,
        Some(wish) => {
            // Everyone was told the same moment; the spread keeps them from arriving together.
            let spread = share(policy.backoff_base, jitter);
            ours.max(wish.min(policy.retry_after_cap).saturating_add(spread))
        }
    }
}
