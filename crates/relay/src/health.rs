//! Pages for the orchestrator.

use crate::progress::Progress;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use metrics_exporter_prometheus::PrometheusHandle;
use std::time::Duration;

/// A loop that has not gone round for this long hangs, and only a restart helps.
const HANGS_AFTER: Duration = Duration::from_mins(2);

#[derive(Clone)]
struct Pages {
    progress: Progress,
    stall_after: Duration,
    metrics: PrometheusHandle,
}

/// `/livez` (the loop goes round), `/readyz` (it reaches the outbox, and is not stopping) and `/metrics`.
pub fn health_routes(progress: Progress, stall_after: Duration, metrics: PrometheusHandle) -> Router {
    Router::new()
        .route("/livez", get(live))
        .route("/readyz", get(ready))
        .route("/metrics", get(|State(pages): State<Pages>| async move { pages.metrics.render() }))
        .with_state(Pages { progress, stall_after, metrics })
}

async fn live(State(pages): State<Pages>) -> (StatusCode, &'static str) {
    if pages.progress.is_stopping() || pages.progress.since_turn() < HANGS_AFTER {
        (StatusCode::OK, "ok")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "loop hangs")
    }
}

async fn ready(State(pages): State<Pages>) -> (StatusCode, &'static str) {
    if pages.progress.is_stopping() {
        (StatusCode::SERVICE_UNAVAILABLE, "stopping")
    } else if pages.progress.since_look() < pages.stall_after {
        (StatusCode::OK, "ok")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "outbox not reached")
    }
}
