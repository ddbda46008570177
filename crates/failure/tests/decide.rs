//! The decision table, row by row, and its invariants over everything else.

use std::time::Duration;

use backline_failure::{Class, Decision, Failure, Mode, Policy, decide};
use proptest::prelude::*;

const LAST: u32 = 3;

fn policy(next_submission_after_spent_key: bool) -> Policy {
    Policy { max_attempts: LAST, next_submission_after_spent_key, ..Policy::default() }
}

fn name(decision: Decision) -> &'static str {
    match decision {
        Decision::Retry { counted: true, next_submission: false, .. } => "retry",
        Decision::Retry { counted: false, next_submission: false, .. } => "retry free",
        Decision::Retry { counted: true, next_submission: true, .. } => "resubmit",
        Decision::Retry { counted: false, next_submission: true, .. } => "resubmit free",
        Decision::Reject => "reject",
        Decision::Obsolete => "obsolete",
        Decision::Unknown => "unknown",
        Decision::Block { .. } => "block",
        Decision::Dead => "dead",
    }
}

#[test]
fn the_table() {
    use Class::{Blocked, Obsolete, Poison, Rejected, Throttled, Transient, Unknown};
    use Mode::{Command, Event, Reconcile};
    // class, attempt of 3, may have left, mode, what happens
    let rows = [
        (Transient, 1, false, Command, "retry"),
        (Transient, 2, true, Command, "retry"),
        (Transient, 3, false, Command, "dead"),
        (Transient, 3, true, Command, "unknown"),
        (Transient, 3, true, Event, "unknown"),
        (Transient, 3, false, Event, "dead"),
        (Transient, 3, true, Reconcile, "dead"),
        (Throttled, 1, true, Command, "retry free"),
        (Throttled, 99, true, Event, "retry free"),
        (Rejected, 1, true, Command, "reject"),
        (Rejected, 9, false, Reconcile, "reject"),
        (Obsolete, 1, false, Reconcile, "obsolete"),
        (Obsolete, 9, false, Command, "obsolete"),
        (Unknown, 1, true, Command, "unknown"),
        (Unknown, 99, true, Event, "unknown"),
        (Unknown, 1, false, Command, "unknown"),
        (Unknown, 1, true, Reconcile, "retry"),
        (Unknown, 3, true, Reconcile, "dead"),
        (Blocked, 1, true, Command, "block"),
        (Blocked, 99, false, Reconcile, "block"),
        (Poison, 1, false, Command, "dead"),
        (Poison, 1, false, Reconcile, "dead"),
        (Poison, 1, true, Command, "unknown"),
        (Poison, 99, true, Event, "unknown"),
        (Poison, 1, true, Reconcile, "retry"),
        (Poison, 3, true, Reconcile, "dead"),
    ];
    for (class, attempt, left, mode, expected) in rows {
        let decision = decide(&Failure::new(class, "x"), attempt, left, mode, &policy(true), 0.5);
        assert_eq!(name(decision), expected, "{class} attempt {attempt} left {left} {mode}");
    }
}

#[test]
fn a_spent_key_is_resubmitted_only_by_policy() {
    let refused = Failure::transient("x").with_key_spent();
    let decide =
        |attempt, allowed| name(decide(&refused, attempt, true, Mode::Command, &policy(allowed), 0.0));
    assert_eq!(decide(1, true), "resubmit");
    assert_eq!(decide(1, false), "reject");
    assert_eq!(decide(LAST, true), "reject");
}

#[test]
fn each_counted_retry_waits_twice_as_long_as_the_one_before() {
    let spent = Failure::transient("x").with_key_spent();
    let policy = Policy { next_submission_after_spent_key: true, ..Policy::default() };
    for failure in [Failure::transient("x"), spent, Failure::unknown("x"), Failure::poison("x")] {
        let wait = |attempt| match decide(&failure, attempt, true, Mode::Reconcile, &policy, 0.0) {
            Decision::Retry { delay, counted: true, .. } => Some(delay.as_millis()),
            _ => None,
        };
        assert_eq!([1, 2, 3].map(wait), [Some(500), Some(1_000), Some(2_000)], "{failure}");
    }
}

#[test]
fn a_wish_of_the_provider_is_kept_and_capped() {
    let wait = |wish: Duration| match decide(
        &Failure::throttled("x").with_retry_after(wish),
        1,
        true,
        Mode::Command,
        &Policy::default(),
        0.0,
    ) {
        Decision::Retry { delay, .. } => Some(delay),
        _ => None,
    };
    assert_eq!(wait(Duration::from_secs(90)), Some(Duration::from_secs(90)));
    assert_eq!(wait(Duration::MAX), Some(Policy::default().retry_after_cap));
    assert_eq!(wait(Duration::ZERO), Some(Duration::from_secs(2)));
}

#[test]
fn a_wish_is_spread_over_one_base_wait_so_that_the_fleet_does_not_return_at_once() {
    let wish = Duration::from_secs(90);
    let failure = Failure::throttled("x").with_retry_after(wish);
    for (jitter, spread) in [(0.0, 0), (0.25, 250), (0.5, 500)] {
        let decision = decide(&failure, 1, true, Mode::Command, &Policy::default(), jitter);
        let delay = wish + Duration::from_millis(spread);
        assert_eq!(decision, Decision::Retry { delay, counted: false, next_submission: false });
    }
}

#[test]
fn a_refused_account_is_left_alone_for_the_longest_wait_from_the_first_attempt() {
    let cap = Policy::default().backoff_cap;
    for attempt in [1, 99] {
        let decide =
            |jitter| decide(&Failure::blocked("x"), attempt, true, Mode::Command, &Policy::default(), jitter);
        assert_eq!(decide(0.0), Decision::Block { delay: cap / 2 });
        assert_eq!(decide(1.0), Decision::Block { delay: cap });
    }
}

fn any_duration() -> impl Strategy<Value = Duration> {
    prop_oneof![(0_u64..1_000_000).prop_map(Duration::from_millis), Just(Duration::MAX)]
}

prop_compose! {
    fn any_failure()(
        class in prop::sample::select(&Class::ALL[..]),
        retry_after in prop::option::of(any_duration()),
        key_spent in any::<bool>(),
    ) -> Failure {
        Failure { retry_after, key_spent, ..Failure::new(class, "x") }
    }
}

prop_compose! {
    fn any_policy()(
        max_attempts in 0_u32..30,
        backoff_base in any_duration(),
        backoff_cap in any_duration(),
        retry_after_cap in any_duration(),
        next_submission_after_spent_key in any::<bool>(),
    ) -> Policy {
        Policy { max_attempts, backoff_base, backoff_cap, retry_after_cap, next_submission_after_spent_key }
    }
}

proptest! {
    #[test]
    fn the_invariants_hold_for_every_failure(
        failure in any_failure(),
        attempt in prop_oneof![1_u32..40, any::<u32>()],
        left in any::<bool>(),
        mode in prop::sample::select(&Mode::ALL[..]),
        policy in any_policy(),
        jitter in 0.0_f64..1.0,
    ) {
        let decision = decide(&failure, attempt, left, mode, &policy, jitter);
        let command = mode != Mode::Reconcile;

        if command && left {
            prop_assert_ne!(decision, Decision::Dead, "what may have left is never dead");
        }
        if failure.class == Class::Unknown && command {
            prop_assert_eq!(decision, Decision::Unknown, "unknown stays unknown");
        }
        if decision == Decision::Unknown {
            prop_assert!(command, "desired state is repeated, not resolved");
        }
        if matches!(failure.class, Class::Throttled | Class::Blocked) {
            let counted = matches!(decision, Decision::Retry { counted: true, .. });
            prop_assert!(!counted && decision != Decision::Dead && decision != Decision::Unknown);
        }
        if let Decision::Retry { counted, next_submission, .. } = decision {
            prop_assert_eq!(next_submission, failure.key_spent && matches!(failure.class, Class::Transient | Class::Throttled));
            prop_assert!(!next_submission || policy.next_submission_after_spent_key);
            prop_assert!(!counted || attempt < policy.max_attempts, "no counted retry past the last attempt");
        }
        if let Decision::Retry { delay, .. } | Decision::Block { delay } = decision {
            let wish = failure.retry_after.unwrap_or_default().min(policy.retry_after_cap);
            let longest = policy.backoff_cap.max(policy.retry_after_cap.saturating_add(policy.backoff_base));
            prop_assert!(wish <= delay && delay <= longest);
        }
    }
}
