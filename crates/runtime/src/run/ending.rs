//! From a failure to what is written: the one caller of `decide`.

use crate::author::KindSpec;
use crate::claim::Claim;
use crate::finish::How;
use crate::transition::State;
use backline_crash_point::seeded_bug;
use backline_failure::{Class, Decision, Failure, Mode, decide};
use std::time::Duration;

/// What a failed perform leads to. `left` = this attempt's request may have reached the provider.
pub(crate) fn after_failure(spec: &KindSpec, claim: &Claim, failure: Failure, left: bool) -> How {
    let attempt = u32::try_from(claim.operation.attempt).unwrap_or(u32::MAX);
    let (failure, left) = match failure.class {
        Class::Unknown if seeded_bug(14) => (Failure { class: Class::Transient, ..failure }, false),
        Class::Poison if seeded_bug(23) => (failure, false),
        _ => (failure, left),
    };
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
        Decision::Reject => How::finish(
            State::Rejected,
            Some(&failure.code),
            Some(failure.detail.clone()).filter(|d| !d.is_empty()),
        ),
        Decision::Obsolete => How::finish(
            State::Obsolete,
            Some(&failure.code),
            Some(failure.detail.clone()).filter(|d| !d.is_empty()),
        ),
        Decision::Unknown => {
            let repeatable = !failure.key_spent && !failure.stored_answer;
            let policy = &spec.policy;
            let ours =
                backline_failure::backoff(attempt, policy.backoff_base, policy.backoff_cap, rand::random());
            let wait = ours.max(failure.retry_after.unwrap_or_default().min(policy.retry_after_cap));
            unknown(wait, true, repeatable, failure)
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
    How::Leave {
        state: State::Unknown,
        delay,
        counted,
        next_submission: false,
        repeatable,
        failure: Some(failure),
    }
}

/// What a lookup that could not decide leads to.
pub(crate) fn still_unknown(
    spec: &KindSpec,
    claim: &Claim,
    code: &'static str,
    wait: Option<Duration>,
) -> How {
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

#[cfg(test)]
mod tests {
    use super::{after_failure, still_unknown};
    use crate::author::{KindSpec, Operation};
    use crate::claim::{Claim, Fence, LeaseKeeper};
    use crate::finish::How;
    use crate::transition::{Happening, State, next};
    use backline_failure::{Class, Deadline, Failure, Mode};
    use proptest::prelude::*;
    use std::time::Duration;
    use time::OffsetDateTime;
    use uuid::Uuid;

    fn claim(attempt: i32, may_have_left: bool) -> Option<Claim> {
        let lease = LeaseKeeper::new(Duration::from_secs(1), Uuid::nil())
            .adopt(1, 1, Deadline::after(Duration::ZERO))
            .pop()?;
        let now = OffsetDateTime::UNIX_EPOCH;
        Some(Claim {
            operation: Operation {
                id: Uuid::nil(),
                kind: "k".to_owned(),
                organization: Uuid::nil(),
                project: None,
                operation_key: "k".to_owned(),
                generation: 1,
                submission: 1,
                attempt,
                correlation_id: Uuid::nil(),
                causation_id: None,
                traceparent: None,
                accepted_at: now,
                first_submitted_at: None,
                claimed_at: now,
            },
            fence: Fence { token: 1, nonce: 1, lease: 1 },
            capped: None,
            input: "{}".to_owned(),
            input_version: 1,
            lookups: 0,
            resolving: false,
            may_have_left,
            cancel_requested: false,
            expired: false,
            absent_in_ms: None,
            lease,
        })
    }

    fn to(how: &How) -> State {
        match how {
            How::Finish { outcome, .. } => *outcome,
            How::Leave { state, .. } => *state,
        }
    }

    proptest! {
        #[test]
        fn an_ending_is_always_a_legal_transition_and_doubt_survives(
            class in 0_usize..7, attempt in 1_i32..40, earlier in any::<bool>(), left in any::<bool>(),
            spent in any::<bool>(), reconcile in any::<bool>(),
        ) {
            let mode = if reconcile { Mode::Reconcile } else { Mode::Command };
            let spec = KindSpec::new(mode, "p");
            let mut failure = Failure::new(Class::ALL[class], "code");
            if spent { failure = failure.with_key_spent(); }
            let Some(claim) = claim(attempt, earlier) else { return Ok(()) };
            let how = after_failure(&spec, &claim, failure.clone(), left);
            let state = to(&how);
            let happening = match state {
                State::Rejected => Happening::Refused,
                State::Obsolete => Happening::Unwanted,
                State::Ready => Happening::Retry,
                State::Unknown => Happening::Doubt,
                State::Dead => Happening::Exhausted,
                other => return Err(TestCaseError::fail(format!("ended in {}", other.as_str()))),
            };
            prop_assert_eq!(next(State::Running, happening), Some(state));
            // G6: what may have been applied by an earlier attempt of this submission is ended only by an answer of
            // the provider's idempotency layer about this very key.
            if !reconcile && earlier && !spent {
                prop_assert_eq!(state, State::Unknown);
            }
            if !reconcile && left && failure.class == Class::Unknown {
                prop_assert_eq!(state, State::Unknown);
            }
        }
    }

    #[test]
    fn spent_lookups_ask_a_person_and_an_early_absence_does_not_count() {
        let spec = KindSpec { max_lookups: 3, ..KindSpec::new(Mode::Command, "p") };
        let Some(mut claim) = claim(1, true) else { return };
        claim.lookups = 2;
        assert_eq!(to(&still_unknown(&spec, &claim, "x", None)), State::Manual);
        assert_eq!(to(&still_unknown(&spec, &claim, "x", Some(Duration::from_secs(1)))), State::Unknown);
        claim.lookups = 1;
        assert_eq!(to(&still_unknown(&spec, &claim, "x", None)), State::Unknown);
    }
}
