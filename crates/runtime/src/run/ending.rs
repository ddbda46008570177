//! From a failure to what is written: the one caller of `decide`.

use crate::author::KindSpec;
use crate::claim::Claim;
use crate::finish::How;
use crate::transition::State;
use backline_failure::{Class, Decision, Failure, Mode, decide};
use std::time::Duration;

/// What a failed perform leads to. `left` = this attempt's request may have reached the provider.
pub(crate) fn after_failure(spec: &KindSpec, claim: &Claim, failure: Failure, left: bool) -> How {
    let attempt = u32::try_from(claim.operation.attempt).unwrap_or(u32::MAX);
    let doubt = left || claim.may_have_left;
    let decision = decide(&failure, attempt, doubt, spec.mode, &spec.policy, rand::random());
    let reconcile = spec.mode == Mode::Reconcile;
    // An earlier attempt of this submission is still in doubt: only an answer of the provider's idempotency layer
    // about this key, or a lookup, may end the doubt.
    let in_doubt = claim.may_have_left && !failure.key_spent && !reconcile;
    match decision {
        Decision::Retry { delay, counted, next_submission } if in_doubt && !next_submission => {
            unknown(delay, counted, true, failure)
        }
        Decision::Retry { delay, counted, next_submission } => How::Leave {
            state: State::Ready,
            delay,
            counted,
            next_submission,
            repeatable: true,
            failure: Some(failure),
        },
        Decision::Reject | Decision::Obsolete if in_doubt => unknown(Duration::ZERO, true, false, failure),
        Decision::Reject => {
            How::finish(State::Rejected, Some(&failure.code), Some(failure.detail.clone()).filter(|d| !d.is_empty()))
        }
        Decision::Obsolete => {
            How::finish(State::Obsolete, Some(&failure.code), Some(failure.detail.clone()).filter(|d| !d.is_empty()))
        }
        Decision::Unknown => {
            let repeatable = !failure.key_spent;
            unknown(spec.policy.backoff_base, true, repeatable, failure)
        }
        Decision::Block { delay } if in_doubt => unknown(delay, false, true, failure),
        Decision::Block { delay } => How::Leave {
            state: State::Ready,
            delay,
            counted: false,
            next_submission: false,
            repeatable: true,
            failure: Some(failure),
        },
        Decision::Dead => How::Leave {
            state: State::Dead,
            delay: Duration::ZERO,
            counted: true,
            next_submission: false,
            repeatable: true,
            failure: Some(failure),
        },
    }
}

fn unknown(delay: Duration, counted: bool, repeatable: bool, failure: Failure) -> How {
    How::Leave { state: State::Unknown, delay, counted, next_submission: false, repeatable, failure: Some(failure) }
}

/// What a lookup that could not decide leads to.
pub(crate) fn still_unknown(spec: &KindSpec, claim: &Claim, code: &'static str, wait: Option<Duration>) -> How {
    let lookups = u32::try_from(claim.lookups).unwrap_or(u32::MAX);
    if wait.is_none() && lookups + 1 >= spec.max_lookups {
        return manual(Failure::new(Class::Unknown, code).with_detail("lookups are spent"));
    }
    let backoff = backline_failure::backoff(
        lookups + 1,
        spec.policy.backoff_base,
        spec.policy.backoff_cap,
        rand::random(),
    );
    unknown(wait.unwrap_or(backoff), wait.is_none(), false, Failure::new(Class::Unknown, code))
}

/// A person must decide.
pub(crate) fn manual(failure: Failure) -> How {
    How::Leave {
        state: State::Manual,
        delay: Duration::ZERO,
        counted: true,
        next_submission: false,
        repeatable: false,
        failure: Some(failure),
    }
}

/// Gives the claim back as if it had never been taken.
pub(crate) fn release(claim: &Claim, delay: Duration) -> How {
    let state = if claim.resolving || claim.may_have_left { State::Unknown } else { State::Ready };
    How::Leave { state, delay, counted: false, next_submission: false, repeatable: true, failure: None }
}
