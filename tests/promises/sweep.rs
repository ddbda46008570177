//! Relay and worker may die or freeze at any durable boundary, and payments still happen once and are accounted for.
//!
//! `BACKLINE_SWEEP_ONLY="Kill of the Worker at tx.finish_one"` visits only what its name contains, to repeat a failure.

use backline_promises::sweep::{Role, boundary, open, record, survive, visits};
use std::collections::BTreeSet;

/// Benches at a time. A run mostly waits for leases, so more than there are cores of a small machine.
const SHARDS: usize = 6;

#[test]
fn payments_survive_one_fault_at_every_boundary() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let recording = runtime.block_on(record())?;
    let mut items = Vec::new();
    for (name, sites) in &recording {
        let reached: BTreeSet<String> = sites.iter().map(|site| site.name.clone()).collect();
        let role = if *name == "relay" {
            boundary::compare(&reached, boundary::RELAY, boundary::RELAY_SOMETIMES)?;
            Role::Relay
        } else {
            boundary::compare(&reached, boundary::WORKER, boundary::WORKER_SOMETIMES)?;
            Role::Worker
        };
        println!("{name}: {} boundaries, {} arrivals", reached.len(), sites.len());
        items.extend(visits(role, sites));
    }
    survive("faults", SHARDS, items, async || open(&[]).await, async |bench, visit| visit.run(bench).await)
}
