//! Relay and worker may die or freeze at any durable boundary, and payments still happen once and are accounted for.
//!
//! `BACKLINE_SWEEP_ONLY="Kill of the Worker at tx.finish_one"` visits only what its name contains, to repeat a failure.

use backline_promises::sweep::{Role, boundary, in_parallel, record, visits};
use std::collections::BTreeSet;
use std::time::Instant;

/// Benches at a time. A run mostly waits for leases, so more than there are cores of a small machine.
const SHARDS: usize = 6;

#[test]
fn payments_survive_one_fault_at_every_boundary() -> anyhow::Result<()> {
    let started = Instant::now();
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
    if let Ok(only) = std::env::var("BACKLINE_SWEEP_ONLY") {
        items.retain(|visit| visit.to_string().contains(&only));
    }
    let total = items.len();
    let failed = in_parallel(
        SHARDS,
        items,
        async || backline_promises::sweep::open(&[]).await,
        async |bench, visit| visit.run(bench).await,
    )?;
    println!("{} of {total} faults survived in {:.0?}", total - failed.len(), started.elapsed());
    anyhow::ensure!(
        failed.is_empty(),
        "{} of {total} faults not survived:\n{}",
        failed.len(),
        failed.join("\n\n")
    );
    Ok(())
}
