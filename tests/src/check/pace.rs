//! Invariant 17: how fast and how many at once the providers were called, as they saw it.
//!
//! What is checked is what a provider may ask for: no more calls in flight and no more calls in a second than the
//! account's budget, and no call of an operation before the wait that the last answer named.

use crate::{EffectCall, Stack};
use std::collections::HashMap;
use std::time::Duration;
use uuid::Uuid;

/// Account of the scripted worker's kinds, and of the payments worker's.
const SCRIPTED: &str = "promise:provider";
const STRIPE: &str = "stripe:platform";

/// What one process may have taken ahead of its calls, in seconds of the account's rate.
const SLICE: f64 = 0.25;

/// Two processes and two clocks lie between the moment of an answer and that of the next call.
const CLOCKS: Duration = Duration::from_millis(5);

#[derive(sqlx::FromRow)]
struct Budget {
    rate_per_second: f64,
    burst: f64,
    concurrency: i32,
}

/// Most calls that were in flight at one moment. A call ends with its answer or with its caller.
#[must_use]
pub fn most_in_flight(calls: &[EffectCall]) -> usize {
    let at = |call: &EffectCall| {
        let open = |other: &&EffectCall| {
            other.arrived <= call.arrived && other.left.is_none_or(|end| end > call.arrived)
        };
        calls.iter().filter(open).count()
    };
    calls.iter().map(at).max().unwrap_or(0)
}

/// Most calls that arrived within one second. Calls are in order of arrival.
fn most_in_a_second(calls: &[EffectCall]) -> usize {
    let (mut most, mut first) = (0, 0);
    for (last, call) in calls.iter().enumerate() {
        let old = |earlier: &EffectCall| call.arrived - earlier.arrived >= Duration::from_secs(1);
        while calls.get(first).is_some_and(old) {
            first += 1;
        }
        most = most.max(last + 1 - first);
    }
    most
}

pub(super) async fn check(stack: &Stack) -> anyhow::Result<Vec<String>> {
    let mut violations = Vec::new();
    let calls = stack.effects().calls();
    if let Some(budget) = budget(stack, SCRIPTED).await? {
        let (flying, second) = (most_in_flight(&calls), most_in_a_second(&calls));
        if i64::try_from(flying)? > i64::from(budget.concurrency) {
            violations.push(format!("17 {flying} calls in flight, {} allowed", budget.concurrency));
        }
        #[expect(clippy::cast_precision_loss, reason = "processes and calls of one test")]
        let (processes, second) = (stack.members().count() as f64, second as f64);
        // A full bucket, what refills it meanwhile, and what each process had taken before.
        let allowed = budget.burst + budget.rate_per_second * (1.0 + SLICE * processes);
        if second > allowed {
            violations.push(format!("17 {second} calls in one second, {allowed} allowed"));
        }
    }
    violations.extend(impatient(&calls));
    if let Some(budget) = budget(stack, STRIPE).await? {
        let held = most_held(stack)?;
        if held > i64::from(budget.concurrency) {
            violations.push(format!("17 {held} calls held by the sandbox, {} allowed", budget.concurrency));
        }
    }
    Ok(violations)
}

/// Calls of an operation that came after the answer to the one before, and before the wait was over which that had
/// named. Who called while the answer was outstanding could not know of it.
fn impatient(calls: &[EffectCall]) -> Vec<String> {
    let (mut found, mut told) = (Vec::new(), HashMap::<Uuid, &EffectCall>::new());
    for call in calls {
        if let Some(before) = told.insert(call.operation, call)
            && let (Some(answered), Some(wait)) = (before.answered, before.wait)
            && let Some(gap) = call.arrived.checked_duration_since(answered)
            && gap + CLOCKS < wait
        {
            found
                .push(format!("17 {} was called {gap:?} after it was told to wait {wait:?}", call.operation));
        }
    }
    found
}

/// Most writing calls that the sandbox held at one moment, from the order of its journal.
fn most_held(stack: &Stack) -> anyhow::Result<i64> {
    let (mut most, mut held) = (0, 0);
    for line in stack.journal()? {
        if line["replied"] == "held" {
            held += 1;
        } else if line["was_held"] == true && line["method"] != "GET" {
            held -= 1;
        }
        most = most.max(held);
    }
    Ok(most)
}

async fn budget(stack: &Stack, account: &str) -> sqlx::Result<Option<Budget>> {
    let sql = "select rate_per_second, burst, concurrency from backline.provider_budget where provider_account = $1";
    sqlx::query_as(sql).bind(account).fetch_optional(stack.pool()).await
}

#[cfg(test)]
mod tests {
    use super::{impatient, most_in_a_second, most_in_flight};
    use crate::EffectCall;
    use serde_json::json;
    use std::time::{Duration, Instant};

    /// Calls of one operation: arrival, end and named wait, in milliseconds.
    fn calls(times: &[(u64, u64, Option<u64>)]) -> serde_json::Result<Vec<EffectCall>> {
        let begun = Instant::now();
        let mut calls = Vec::new();
        for (arrived, left, wait) in times {
            let call = json!({"operation": uuid::Uuid::nil(), "kind": "k", "key": "", "generation": 1, "submission": 1,
                "attempt": 1, "value": null});
            let mut call: EffectCall = serde_json::from_value(call)?;
            call.arrived = begun + Duration::from_millis(*arrived);
            call.answered = Some(begun + Duration::from_millis(*left));
            call.left = call.answered;
            call.wait = wait.map(Duration::from_millis);
            calls.push(call);
        }
        Ok(calls)
    }

    #[test]
    fn calls_in_flight_and_in_a_second_are_counted_as_the_provider_sees_them() -> serde_json::Result<()> {
        let seen = calls(&[
            (0, 300, None),
            (100, 200, None),
            (200, 900, None),
            (1000, 1100, None),
            (1150, 1200, None),
        ])?;
        assert_eq!(most_in_flight(&seen), 2);
        assert_eq!(most_in_a_second(&seen), 3);
        assert_eq!((most_in_flight(&[]), most_in_a_second(&[])), (0, 0));
        Ok(())
    }

    #[test]
    fn a_call_before_its_named_wait_is_over_is_found() -> serde_json::Result<()> {
        assert_eq!(
            impatient(&calls(&[(0, 10, Some(1000)), (1010, 1020, None), (1030, 1040, None)])?),
            [""; 0]
        );
        assert_eq!(impatient(&calls(&[(0, 10, Some(1000)), (900, 910, None)])?).len(), 1);
        assert_eq!(impatient(&calls(&[(0, 10, Some(1000)), (5, 15, None)])?), [""; 0]);
        Ok(())
    }
}
