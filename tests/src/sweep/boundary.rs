//! Names of the boundaries, and what the reliability plan calls them.
//!
//! | Site | Where | Plan |
//! |---|---|---|
//! | `tx.relay.take` | lanes taken under a lease | R1, R2 |
//! | `tx.relay.read`, `tx.relay.horizon`, `tx.relay.backlog`, `tx.relay.required` | reading only | R2, R8 |
//! | `broker.publish` | one publish request | R3, R4, R5 |
//! | `tx.relay.mark` | confirmed entries leave the outbox | R6, R7, R8 |
//! | `tx.relay.renew` | leases of lanes lengthened | R9 |
//! | `tx.relay.release` | lane given back with its mark | R8 |
//! | `tx.relay.park` | refused entries set aside | R11 |
//! | `tx.relay.rescan`, `tx.relay.reoffer` | sweeps behind mark and broker | T4, T5 |
//! | `tx.accept` | seal, operations, identities of a delivery | C1, C2 |
//! | `tx.accept_parked` | deliveries accepted that waited for a capable build | C2 |
//! | `tx.read` | authoritative state read before a convergence | D1, D2 |
//! | `broker.ack` | acknowledgement handed to the client | C11, C12, C16 |
//! | `tx.claim` | intake folded, operations claimed | C3, D1 |
//! | `stripe.request`, `twilio.request` | first byte of a write, its answer | C4, C5, C6, D2, D3 |
//! | `tx.guard` | frozen instruction compared with the committed state | D1 |
//! | `tx.mark_left` | a request without a key at the provider may leave from now on | C3, C4 |
//! | `tx.finish`, `tx.finish_one` | outcome, children, completion, departures | C7 to C10, C15, D3, D4, U2, Q1 |
//! | `tx.evidence` | reply of a fenced holder kept | U1 |
//! | `tx.claim_unknown` | unknown repeated or looked up | U1, U3, U4 |
//! | `tx.renew_lease` | leases of claims lengthened | C13 |
//! | `tx.reclaim` | expired leases emptied | C3, U1 |
//! | `tx.cancel`, `tx.backstop`, `tx.partitions` | sweeps | T4, M1 |
//! | `tx.declare`, `tx.incarnation` | before the first claim | M3 |
//!
//! The `A` points (effect happened, reply lost) are visited by the proxy before PostgreSQL, by the provider's
//! `drop_reply` and by the broker's `accept-then-fail`. Ingress, fan-out, objects, schedules and workflows are not
//! part of these programs yet.

use std::collections::BTreeSet;

/// Part of the sites that only a reader of the metrics reaches.
pub(crate) const SCRAPED: &str = "relay.backlog";

/// Transactions and calls of the relay that every run passes.
pub const RELAY: &[&str] = &[
    "broker.publish",
    "tx.relay.backlog",
    "tx.relay.horizon",
    "tx.relay.mark",
    "tx.relay.read",
    "tx.relay.release",
    "tx.relay.reoffer",
    "tx.relay.required",
    "tx.relay.rescan",
    "tx.relay.take",
];

/// Of the relay, on occasion: a lane held for longer than a third of its lease, an entry that the broker refuses.
pub const RELAY_SOMETIMES: &[&str] = &["tx.relay.park", "tx.relay.renew"];

/// Transactions and calls of the payments worker that every run passes.
pub const WORKER: &[&str] = &[
    "broker.ack",
    "stripe.request",
    "tx.accept",
    "tx.accept_parked",
    "tx.backstop",
    "tx.cancel",
    "tx.claim",
    "tx.claim_unknown",
    "tx.declare",
    "tx.finish",
    "tx.finish_one",
    "tx.incarnation",
    "tx.partitions",
    "tx.read",
    "tx.reclaim",
    "tx.renew_lease",
];

/// Of the worker, on occasion: the reply of a holder that lost its claim.
pub const WORKER_SOMETIMES: &[&str] = &["tx.evidence"];

/// Transactions and calls of the Twilio worker that every run passes. It has no consumer, so no delivery.
pub const TWILIO: &[&str] = &[
    "tx.backstop",
    "tx.cancel",
    "tx.claim",
    "tx.claim_unknown",
    "tx.declare",
    "tx.finish_one",
    "tx.guard",
    "tx.incarnation",
    "tx.mark_left",
    "tx.partitions",
    "tx.read",
    "tx.reclaim",
    "tx.renew_lease",
    "twilio.request",
];

/// Of the Twilio worker, on occasion: attempts that end in a batch.
pub const TWILIO_SOMETIMES: &[&str] = &["tx.evidence", "tx.finish"];

/// Around every write of the Twilio worker, whatever its kind.
pub const REQUESTS: [&str; 2] = ["twilio.request.before", "twilio.request.after"];

/// Transactions that only read, or that sweep and declare without deciding about an operation.
pub const QUIET: &[&str] = &[
    "tx.accept_parked",
    "tx.backstop",
    "tx.cancel",
    "tx.declare",
    "tx.incarnation",
    "tx.partitions",
    "tx.read",
    "tx.relay.backlog",
    "tx.relay.horizon",
    "tx.relay.read",
    "tx.relay.required",
];

/// Whether a site belongs to a transaction that decides nothing.
#[must_use]
pub fn quiet(site: &str) -> bool {
    QUIET.iter().any(|quiet| site.strip_prefix(quiet).is_some_and(|rest| rest.starts_with('.')))
}

/// Compares what a recording run has reached with what is known: nothing may be missing, nothing may be new.
///
/// # Errors
/// Names what is missing or new.
pub fn compare(reached: &BTreeSet<String>, always: &[&str], sometimes: &[&str]) -> anyhow::Result<()> {
    let steps = |name: &str| match name.starts_with("tx.") {
        true => vec!["begin.before", "begin.after", "commit.before", "commit.after"],
        false => vec!["before", "after"],
    };
    let sites = |names: &[&str]| -> BTreeSet<String> {
        names
            .iter()
            .flat_map(|name| steps(name).into_iter().map(move |step| format!("{name}.{step}")))
            .collect()
    };
    let (always, sometimes) = (sites(always), sites(sometimes));
    let missing: Vec<_> = always.difference(reached).collect();
    let known: BTreeSet<String> = always.union(&sometimes).cloned().collect();
    let new: Vec<_> = reached.difference(&known).collect();
    anyhow::ensure!(missing.is_empty(), "boundaries that the recording run no longer reaches: {missing:?}");
    anyhow::ensure!(new.is_empty(), "boundaries that nobody has named in the reliability plan: {new:?}");
    Ok(())
}
