//! Pages for the orchestrator.

use crate::progress::Progress;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use backline_outbox::drain::backlog;
use metrics_exporter_prometheus::PrometheusHandle;
use sqlx::PgPool;
use std::time::Duration;
use tokio::time::timeout;

/// A loop that has not gone round for this long hangs, and only a restart helps.
const HANGS_AFTER: Duration = Duration::from_mins(2);
/// Half of what Prometheus gives a scrape by default: counters are shown also while the database does not answer.
const LOOK_LIMIT: Duration = Duration::from_secs(5);

#[derive(Clone)]
struct Pages {
    progress: Progress,
    stall_after: Duration,
    metrics: PrometheusHandle,
    pool: PgPool,
}

/// `/livez` (the loop goes round), `/readyz` (it reaches the outbox, and is not stopping) and `/metrics`, which asks the
/// outbox through `pool`: one of its own, so that scrapes and work never wait for each other.
pub fn health_routes(
    progress: Progress,
    stall_after: Duration,
    metrics: PrometheusHandle,
    pool: PgPool,
) -> Router {
    Router::new()
        .route("/livez", get(live))
        .route("/readyz", get(ready))
        .route("/metrics", get(exposition))
        .with_state(Pages { progress, stall_after, metrics, pool })
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

async fn exposition(State(pages): State<Pages>) -> String {
    match timeout(LOOK_LIMIT, backlog(&pages.pool)).await {
        Ok(Ok(backlog)) => {
            metrics::gauge!("backline_outbox_oldest_unpublished_seconds").set(backlog.oldest_seconds);
            #[expect(clippy::cast_precision_loss, reason = "a gauge needs no 53 bits")]
            metrics::gauge!("backline_outbox_parked").set(backlog.parked as f64);
        }
        failed => {
            // Counters of this process are still worth having; this one says that the gauges are old.
            let error = failed.ok().and_then(Result::err);
            tracing::warn!(?error, "the outbox could not be measured");
            metrics::counter!("backline_metrics_view_failures_total").increment(1);
        }
    }
    pages.metrics.render()
}
