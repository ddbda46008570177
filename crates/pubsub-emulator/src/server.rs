//! One port for gRPC (h2c), REST and the emulator's own pages.

use crate::broker::Broker;
use crate::{grpc, rest};
use anyhow::{Context, Result};
use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::get;
use axum::serve::ListenerExt;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// A listening server.
pub(crate) struct Server {
    pub(crate) addr: SocketAddr,
    pub(crate) task: JoinHandle<std::io::Result<()>>,
}

/// Listens and serves until `stopping`.
pub(crate) async fn start(
    broker: Arc<Broker>,
    listen: SocketAddr,
    stopping: CancellationToken,
) -> Result<Server> {
    let listener =
        TcpListener::bind(listen).await.with_context(|| format!("listen: cannot bind {listen}"))?;
    let addr = listener.local_addr()?;
    // Small frames of acknowledgements must not wait for the peer's delayed acknowledgement.
    let listener = listener.tap_io(|socket| {
        if let Err(e) = socket.set_nodelay(true) {
            tracing::debug!(error = %e, "no TCP_NODELAY");
        }
    });
    let app = Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route(
            "/faults",
            get(rest::faults).put(rest::replace_faults).post(rest::merge_faults).delete(rest::clear_faults),
        )
        .route("/log", get(rest::log).delete(rest::clear_log))
        .route("/stats", get(rest::stats))
        .fallback(route)
        .with_state(broker);
    let serving =
        axum::serve(listener, app).with_graceful_shutdown(async move { stopping.cancelled().await });
    Ok(Server { addr, task: tokio::spawn(async move { serving.await }) })
}

async fn route(State(broker): State<Arc<Broker>>, request: Request) -> Response {
    let content_type = request.headers().get(http::header::CONTENT_TYPE);
    if content_type.is_some_and(|value| value.as_bytes().starts_with(b"application/grpc")) {
        grpc::serve(broker, request).await
    } else {
        rest::serve(broker, request).await
    }
}
