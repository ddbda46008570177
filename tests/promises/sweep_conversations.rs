//! The Twilio worker may die or freeze at any durable boundary, and conversations still follow what was committed.
//!
//! What relay, intake, claims and sweeps do is the same code as under payments, and `sweep` visits all of it; here every
//! boundary is visited at which an operation about a conversation is decided, written or asked for, and each kind of
//! request to the provider for itself. `BACKLINE_SWEEP_ONLY` as there.

use backline_promises::sweep::{
    Change, Role, Visit, Written, boundary, open_rooms, record_rooms, request_visits, survive, visits,
};
use std::collections::BTreeSet;

/// Benches at a time, as in `sweep`.
const SHARDS: usize = 6;

#[test]
fn conversations_survive_one_fault_at_every_boundary() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let sites = runtime.block_on(record_rooms())?;
    let reached: BTreeSet<String> = sites.iter().map(|site| site.name.clone()).collect();
    boundary::compare(&reached, boundary::TWILIO, boundary::TWILIO_SOMETIMES)?;
    let requests = boundary::REQUESTS.map(|name| name.to_owned());
    let mut items: Vec<Visit> = visits(Role::Twilio, &sites);
    // Each kind of request is visited by its own change instead, where it is known which one it is.
    items.retain(|visit| !requests.contains(&visit.site.name) && !boundary::quiet(&visit.site.name));
    items.extend(request_visits(&boundary::REQUESTS));
    println!("twilio: {} boundaries, {} arrivals, {} faults", reached.len(), sites.len(), items.len());
    survive(
        "faults",
        SHARDS,
        items,
        async || open_rooms(&[]).await,
        async |bench, visit| visit.run(bench).await,
    )
}

#[test]
fn a_request_that_lands_after_its_sender_lost_its_lease_changes_nothing_for_good() -> anyhow::Result<()> {
    let items = Change::ALL.map(Written).to_vec();
    // A request is carried out within its timeout and this, counted from when it left.
    let env = [("TWILIO_LINGER", "1500ms".to_owned())];
    let open = async || open_rooms(&env).await;
    survive("faults", SHARDS, items, open, async |bench, written| written.run(bench).await)
}
