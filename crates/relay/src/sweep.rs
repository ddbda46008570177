//! Beside the loop: the trailing mark's samples, and the comparison with seals.

use crate::lane_work::Shared;
use crate::leases::keep_leases;
use backline_outbox::drain::{Reoffered, horizon, reoffer_unsealed, rescan_lanes};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Published events compared in one transaction.
const REOFFER_PAGE: i64 = 1000;

/// Starts everything that runs beside the loop. What panics is started again.
pub(crate) fn start(shared: &Arc<Shared>) -> JoinSet<()> {
    let mut sweeps = JoinSet::new();
    sweeps.spawn(supervise("leases", Arc::clone(shared), keep_leases));
    sweeps.spawn(supervise("trail", Arc::clone(shared), trail));
    sweeps.spawn(supervise("rescan", Arc::clone(shared), rescan));
    sweeps.spawn(supervise("reoffer", Arc::clone(shared), reoffer));
    sweeps
}

async fn supervise<F>(name: &'static str, shared: Arc<Shared>, sweep: fn(Arc<Shared>) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    loop {
        // A set of one, so that the sweep ends with its supervisor.
        let mut running = JoinSet::new();
        running.spawn(sweep(Arc::clone(&shared)));
        if let Some(Err(error)) = running.join_next().await {
            metrics::counter!("backline_relay_sweep_panics_total", "sweep" => name).increment(1);
            tracing::error!(sweep = name, %error, "sweep ended abnormally, starting it again");
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// Looks at every lane from its beginning now and then: the mark is only a short cut.
async fn rescan(shared: Arc<Shared>) {
    let every = shared.config.unmarked_every;
    loop {
        if let Err(error) = rescan_lanes(&shared.pool, every).await {
            tracing::debug!(%error, "cannot scan lanes from their beginning");
        }
        tokio::time::sleep(every / 4).await;
    }
}

/// Offers again what a required consumer has not sealed.
async fn reoffer(shared: Arc<Shared>) {
    loop {
        tokio::time::sleep(shared.config.reoffer_every).await;
        match reoffer_unsealed(&shared.pool, REOFFER_PAGE, shared.config.max_offers).await {
            Ok(Reoffered { offered: 0, parked: 0 }) => {}
            Ok(Reoffered { offered, parked }) => {
                tracing::warn!(offered, parked, "published events were not sealed in time");
                metrics::counter!("backline_outbox_republished_total", "reason" => "unsealed")
                    .increment(offered);
                metrics::counter!("backline_outbox_parked_total", "reason" => "unsealed").increment(parked);
            }
            Err(error) => tracing::warn!(%error, "cannot compare published events with seals"),
        }
    }
}

/// Notes the horizon some twenty times per commit lag.
async fn trail(shared: Arc<Shared>) {
    let every = (shared.config.commit_lag / 20).clamp(Duration::from_millis(100), Duration::from_secs(5));
    loop {
        // The clock first: a number may be older than noted, never younger.
        let at = Instant::now();
        match horizon(&shared.pool).await {
            Ok(seq) => shared.trail.lock().unwrap_or_else(PoisonError::into_inner).note(at, seq),
            Err(error) => tracing::debug!(%error, "cannot look up the outbox horizon"),
        }
        tokio::time::sleep(every).await;
    }
}
