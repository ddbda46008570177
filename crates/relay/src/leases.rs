//! Keeping the lanes that are held.

use crate::lane_work::Shared;
use backline_outbox::drain::{LaneHold, renew_lanes};
use std::sync::{Arc, PoisonError};
use tokio::time::Instant;

/// Renews all leases with one statement, three times per lease.
pub(crate) async fn keep_leases(shared: Arc<Shared>) {
    let lease = shared.config.lease;
    loop {
        tokio::time::sleep(lease / 3).await;
        let holds: Vec<LaneHold> = {
            let held = shared.held.lock().unwrap_or_else(PoisonError::into_inner);
            held.values().map(|(hold, _)| *hold).collect()
        };
        if holds.is_empty() {
            continue;
        }
        let until = Instant::now() + lease;
        match renew_lanes(&shared.pool, &holds, lease).await {
            Ok(kept) => {
                let mut held = shared.held.lock().unwrap_or_else(PoisonError::into_inner);
                for hold in holds {
                    match held.get_mut(&hold.lane) {
                        Some(entry) if entry.0 == hold && kept.contains(&hold.lane) => entry.1 = until,
                        // Lost: removing it stops its work before the next request.
                        Some(entry) if entry.0 == hold => drop(held.remove(&hold.lane)),
                        _ => {}
                    }
                }
            }
            Err(error) => tracing::warn!(%error, "cannot renew lanes"),
        }
    }
}
