//! Embedded Google Pub/Sub for development, tests and drills.
//!
//! One port speaks Google's gRPC services (publish, pull, streaming pull, administration), the REST+JSON
//! administration surface that Google's Rust clients use, and the emulator's own pages:
//!
//! - `GET /healthz`: ready.
//! - `GET|PUT|POST|DELETE /faults`: faults on purpose, see [`FaultPlan`].
//! - `GET|DELETE /log?from=SEQ&topic=NAME`: every accepted message as NDJSON, for checkers.
//! - `GET /stats`: counters and sizes.
//!
//! With [`Config::data_dir`] state survives the process: every change is written (not synced) to a journal
//! before its reply, so a killed process loses nothing it confirmed. A power cut may lose the tail.
//! Push delivery, schemas, IAM and expiry of idle subscriptions are not emulated.

mod broker;
mod codes;
mod config;
mod faults;
mod filter;
mod grpc;
mod limits;
mod log;
mod persist;
mod rest;
mod server;
mod state;
mod stats;
mod wire;

pub use config::Config;
pub use faults::{
    DeadLetterFault, Delay, DeliveryAttempts, DropAcks, Duplicate, FaultPlan, PublishFault, PublishMode,
    Reorder, StreamFault,
};

use anyhow::{Context, Result};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A running emulator. Dropping it stops it without waiting; [`Emulator::shutdown`] waits.
pub struct Emulator {
    /// Address it listens on.
    pub addr: SocketAddr,
    broker: Arc<broker::Broker>,
    stopping: CancellationToken,
    server: Option<server::Server>,
}

impl Emulator {
    /// Starts an emulator on the current Tokio runtime.
    ///
    /// # Errors
    /// The address cannot be bound, or the data directory cannot be read or written.
    pub async fn start(config: Config) -> Result<Self> {
        let stopping = CancellationToken::new();
        let listen = config.listen;
        let broker = broker::Broker::open(config, stopping.clone())?;
        let server = server::start(Arc::clone(&broker), listen, stopping.clone()).await?;
        Ok(Self { addr: server.addr, broker, stopping, server: Some(server) })
    }

    /// Endpoint for clients that want a URL, such as `http://127.0.0.1:8085`.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Replaces the faults, as `PUT /faults` does.
    ///
    /// # Errors
    /// A rule names an unknown gRPC code.
    pub fn set_faults(&self, plan: FaultPlan) -> Result<()> {
        self.broker.set_faults(plan).map_err(|status| anyhow::anyhow!("{}", status.message()))
    }

    /// How often a fault fired since start, by the names of `GET /faults`.
    #[must_use]
    pub fn fault_fired(&self, name: &str) -> u64 {
        self.broker.faults.snapshot().1.get(name).copied().unwrap_or_default()
    }

    /// Ends every stream and waits until the port is free.
    ///
    /// # Errors
    /// The server had failed.
    pub async fn shutdown(mut self) -> Result<()> {
        self.stopping.cancel();
        match self.server.take() {
            Some(server) => server.task.await.context("server task")?.context("server"),
            None => Ok(()),
        }
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.stopping.cancel();
    }
}
