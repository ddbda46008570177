//! What a handler is given to call its provider with.

use crate::author::KindSpec;
use crate::author::erased::{Handler, Performed};
use crate::claim::Claim;
use crate::flow::{Budgets, RequestGate};
use backline_crash_point::seeded_bug;
use backline_failure::{Call, CallDeadline, Deadline, Failure, LeaseEnd, Mode};
use backline_telemetry::Recording;
use futures_util::FutureExt;
use sha2::{Digest, Sha256};
use std::any::Any;
use std::ops::Deref;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;

/// The call of a running attempt. When the attempt ends, however it ends, nothing that kept a clone may send any more:
/// the lease goes on being renewed for the other claims of its batch.
#[derive(Debug)]
pub(crate) struct OpenCall {
    call: Call,
    gate: Arc<RequestGate>,
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        self.call.deadline.end();
        self.gate.close();
    }
}

impl Deref for OpenCall {
    type Target = Call;

    fn deref(&self) -> &Call {
        &self.call
    }
}

impl OpenCall {
    /// The attempt's call, or `None` when the lease leaves no room for a request. It carries on the attempt's trace
    /// context, or the stored one where the attempt is not recorded. Its first request uses `permit`; further ones take
    /// their own from `budgets`.
    pub(crate) fn new(
        spec: &KindSpec,
        claim: &Claim,
        span: Option<&Recording>,
        budgets: &Budgets,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Option<Self> {
        let operation = &claim.operation;
        let deadline = deadline(spec.mode, spec.request_timeout, claim.lease.lease_end())?;
        let (account, longest_wish) = (&spec.provider_account, spec.policy.retry_after_cap);
        let gate = RequestGate::new(budgets.clone(), account, deadline.clone(), longest_wish, permit);
        let gate = Arc::new(gate);
        let call = Call::new(
            operation.id,
            operation.generation,
            operation.submission,
            operation.attempt,
            provider_key(claim),
            spec.request_timeout,
            deadline,
        )
        .with_gate(gate.clone());
        let trace = span.map(Recording::traceparent).or_else(|| operation.traceparent.clone());
        let call = match trace {
            Some(traceparent) => call.with_traceparent(traceparent),
            None => call,
        };
        Some(Self { call, gate })
    }

    /// Whether the fleet need not be told of the failure that ends the attempt.
    pub(crate) fn told(&self) -> bool {
        self.gate.told()
    }
}

/// A request must be over before the lease is, by the local end, which is never later than the database's. Attempts at
/// a desired state may take many requests and follow the renewals; a frozen instruction is one request or a few, and
/// may start them within what its lease was when it began.
fn deadline(mode: Mode, request: Duration, lease: &LeaseEnd) -> Option<CallDeadline> {
    if seeded_bug(24) {
        return Some(Deadline::after(Duration::from_secs(60)).into());
    }
    let room = lease.until().remaining().checked_sub(request)?;
    let following = CallDeadline::following(lease, request);
    Some(match mode {
        Mode::Reconcile => following,
        Mode::Command | Mode::Event => following.at_most(Deadline::after(room)),
    })
}

/// Depends on nothing but operation, generation and submission: neither attempt, token nor credential.
fn provider_key(claim: &Claim) -> String {
    let operation = &claim.operation;
    let mut name = format!("{}/{}/{}", operation.id, operation.generation, operation.submission);
    if seeded_bug(6) {
        name = format!("{name}/{}", operation.attempt);
    }
    format!("bl_{}", hex::encode(&Sha256::digest(name.as_bytes())[..20]))
}

pub(crate) async fn perform(
    handler: &dyn Handler,
    call: &Call,
    prepared: &(dyn Any + Send + Sync),
) -> Result<Performed, Failure> {
    match AssertUnwindSafe(handler.perform(call, prepared)).catch_unwind().await {
        Ok(result) => result,
        // Before the may-have-left point a panic is poison, after it nobody knows.
        Err(_panic) if call.may_have_left() && !seeded_bug(23) => Err(Failure::unknown("panicked")),
        Err(_panic) => Err(Failure::poison("panicked")),
    }
}

#[cfg(test)]
mod tests {
    use super::deadline;
    use backline_failure::{Deadline, LeaseEnd, Mode};
    use std::time::Duration;

    const REQUEST: Duration = Duration::from_secs(10);

    #[test]
    fn only_attempts_at_a_desired_state_follow_the_renewals_and_a_lost_lease_ends_all() {
        let lease = LeaseEnd::new(Deadline::after(3 * REQUEST));
        let made = Mode::ALL.map(|mode| (mode, deadline(mode, REQUEST, &lease)));
        lease.renew(Deadline::after(6 * REQUEST));
        for (mode, deadline) in &made {
            let remaining = deadline.as_ref().map(|deadline| deadline.remaining()).unwrap_or_default();
            assert_eq!(remaining > 2 * REQUEST, *mode == Mode::Reconcile, "{}", mode.as_str());
            assert!(remaining > REQUEST && remaining <= 5 * REQUEST, "{}", mode.as_str());
        }
        lease.lose();
        assert!(made.iter().all(|(_, deadline)| deadline.as_ref().is_some_and(|deadline| deadline.passed())));
    }

    #[test]
    fn a_lease_without_room_for_a_request_gives_no_call() {
        assert!(deadline(Mode::Command, REQUEST, &LeaseEnd::new(Deadline::after(REQUEST / 2))).is_none());
    }
}
