//! Subscribing: a stream of deliveries that does not end by itself.

use crate::connect::Broker;
use crate::delivery::Delivery;
use crate::pump;
use futures_util::Stream;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// What may be in flight at once: delivered and not yet acknowledged, over all reconnects.
#[derive(Clone, Copy, Debug)]
pub struct FlowLimits {
    /// Deliveries.
    pub messages: u32,
    /// Payload bytes. A single larger delivery is still let through, alone.
    pub bytes: u32,
}

/// Whether the subscription can be read at the moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Connection {
    /// Not known yet.
    Connecting,
    /// Deliveries came, or a probe of the subscription succeeded.
    Up,
    /// The last attempt failed.
    Down {
        /// Code and words of the client, for readiness pages.
        reason: String,
    },
}

/// A source of deliveries. Broken streams are replaced with backoff; what is wrong shows in [`Subscription::connected`].
#[derive(Debug)]
pub struct Subscription {
    deliveries: mpsc::Receiver<Delivery>,
    connection: watch::Receiver<Connection>,
    closing: watch::Sender<bool>,
    pump: JoinHandle<()>,
}

impl Broker {
    /// Starts to read a subscription.
    #[must_use]
    pub fn subscribe(&self, subscription: &str, limits: FlowLimits) -> Subscription {
        // One slot: what waits for a reader waits at the broker, not in memory.
        let (deliveries_in, deliveries) = mpsc::channel(1);
        let (connection_in, connection) = watch::channel(Connection::Connecting);
        let (closing, closing_seen) = watch::channel(false);
        let pump = tokio::spawn(pump::run(
            self.clone(),
            subscription.to_owned(),
            limits,
            deliveries_in,
            connection_in,
            closing_seen,
        ));
        Subscription { deliveries, connection, closing, pump }
    }
}

impl Subscription {
    /// The next delivery; `None` only after [`Subscription::stop`].
    pub async fn recv(&mut self) -> Option<Delivery> {
        self.deliveries.recv().await
    }

    /// Follows the state of the connection.
    #[must_use]
    pub fn connected(&self) -> watch::Receiver<Connection> {
        self.connection.clone()
    }

    /// Asks for no more deliveries; those handed out keep their leases until they are settled.
    pub fn stop(&self) {
        let _ = self.closing.send(true);
    }

    /// Stops, returns what nobody took, and waits until every delivery handed out is settled and its acknowledgement
    /// sent. Returns `false` when `limit` passed first: those leases run out and the entries come again.
    pub async fn close(mut self, limit: Duration) -> bool {
        self.stop();
        self.deliveries.close();
        while let Some(delivery) = self.deliveries.recv().await {
            delivery.nack();
        }
        let done = tokio::time::timeout(limit, &mut self.pump).await.is_ok();
        if !done {
            self.pump.abort();
        }
        done
    }
}

impl Stream for Subscription {
    type Item = Delivery;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Delivery>> {
        self.deliveries.poll_recv(context)
    }
}
