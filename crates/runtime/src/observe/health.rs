//! `/livez`, `/readyz` and `/metrics`.

use crate::Error;
use crate::observe::{Progress, views};
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use backline_broker::Connection;
use metrics_exporter_prometheus::PrometheusHandle;
use sqlx::PgPool;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// What the pages tell about.
#[derive(Clone)]
pub(crate) struct Health {
    /// What a process that is still starting waits for.
    pub(crate) starting: Arc<Progress>,
    /// Set when it has started.
    pub(crate) loops: Arc<OnceLock<Loops>>,
    pub(crate) stopping: CancellationToken,
    pub(crate) pool: PgPool,
    pub(crate) metrics: Option<PrometheusHandle>,
}

/// What must move and what must be connected for the process to be of use.
pub(crate) struct Loops {
    pub(crate) progress: Vec<Arc<Progress>>,
    pub(crate) streams: Vec<(&'static str, watch::Receiver<Connection>)>,
}

/// Serves until `stop`; returns the address it listens on.
pub(crate) async fn serve(
    health: Health,
    listen: SocketAddr,
    stop: CancellationToken,
) -> Result<SocketAddr, Error> {
    let listener = TcpListener::bind(listen).await.map_err(Error::Health)?;
    let address = listener.local_addr().map_err(Error::Health)?;
    let pages = Router::new()
        .route("/livez", get(async || "alive\n"))
        .route("/readyz", get(ready))
        .route("/metrics", get(exposition))
        .with_state(health);
    tokio::spawn(async move {
        let served = axum::serve(listener, pages).with_graceful_shutdown(stop.cancelled_owned()).await;
        if let Err(error) = served {
            tracing::warn!(%error, "health pages stopped");
        }
    });
    Ok(address)
}

impl Loops {
    fn wrong(&self) -> Vec<String> {
        let mut wrong: Vec<String> = self.progress.iter().filter_map(|p| p.stalled()).collect();
        for (consumer, stream) in &self.streams {
            if let Connection::Down { reason } = &*stream.borrow() {
                wrong.push(format!("subscription of {consumer}: {reason}"));
            }
        }
        wrong
    }
}

async fn ready(State(health): State<Health>) -> (StatusCode, String) {
    let mut wrong = match health.loops.get() {
        Some(loops) => loops.wrong(),
        None => vec![health.starting.stalled().unwrap_or_else(|| "starting".to_owned())],
    };
    if health.stopping.is_cancelled() {
        wrong.push("stopping".to_owned());
    }
    if wrong.is_empty() {
        (StatusCode::OK, "ready\n".to_owned())
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, wrong.join("\n") + "\n")
    }
}

async fn exposition(State(health): State<Health>) -> (StatusCode, String) {
    let Some(handle) = &health.metrics else {
        return (StatusCode::NOT_FOUND, "metrics are not installed\n".to_owned());
    };
    if let Err(error) = views::gauges(&health.pool).await {
        // Counters of this process are still worth having; the gauges say since when they are old.
        tracing::warn!(%error, "views could not be read for metrics");
        metrics::counter!("backline_metrics_view_failures_total").increment(1);
    }
    (StatusCode::OK, handle.render())
}
