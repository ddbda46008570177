//! Connections: an accept loop that can close a socket instead of answering.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use crate::app::{App, StartError};
use crate::config::Config;
use crate::reply::CloseSocket;
use crate::routes::router;

/// A running sandbox. Dropping it stops accepting and closes every connection.
#[derive(Debug)]
pub struct Sandbox {
    address: SocketAddr,
    app: Arc<App>,
    connections: TaskTracker,
}

/// Ends a connection: hyper closes the socket when the service fails.
#[derive(Debug, thiserror::Error)]
#[error("connection closed by a fault rule")]
struct Closed;

impl Sandbox {
    /// Rebuilds the state from the journal and starts to listen.
    ///
    /// # Errors
    /// The journal cannot be read, or the address cannot be used.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        let app = Arc::new(App::open(&config)?);
        let listener = TcpListener::bind(config.listen)
            .await
            .and_then(|listener| Ok((listener.local_addr()?, listener)))
            .map_err(|source| StartError::Listen { address: config.listen, source });
        let (address, listener) = listener?;
        let connections = TaskTracker::new();
        connections.spawn(accept(listener, router(Arc::clone(&app)), Arc::clone(&app), connections.clone()));
        Ok(Self { address, app, connections })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://127.0.0.1:PORT`, without a trailing slash.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn app(&self) -> &App {
        &self.app
    }

    /// Closes every connection and waits until the listener is gone. Calls that are still held are not
    /// applied.
    pub async fn stop(self) {
        self.app.stop.cancel();
        self.connections.close();
        self.connections.wait().await;
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.app.stop.cancel();
    }
}

async fn accept(listener: TcpListener, router: Router, app: Arc<App>, connections: TaskTracker) {
    loop {
        let accepted = tokio::select! {
            () = app.stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let (router, stop) = (router.clone(), app.stop.clone());
                connections.spawn(async move {
                    tokio::select! {
                        () = stop.cancelled() => {}
                        () = connection(stream, router) => {}
                    }
                });
            }
            Err(error) => {
                // Out of descriptors: accepting again at once would spin.
                tracing::warn!(%error, "connection not accepted");
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        }
    }
}

async fn connection(stream: TcpStream, router: Router) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "socket option not set");
    }
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let router = router.clone();
        async move {
            let answered: Result<Response, Infallible> = router.oneshot(request.map(Body::new)).await;
            match answered {
                Ok(response) if response.extensions().get::<CloseSocket>().is_some() => Err(Closed),
                Ok(response) => Ok(response),
                Err(never) => match never {},
            }
        }
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        // Closing on purpose and callers that give up both end here.
        tracing::debug!(%error, "connection ended");
    }
}
