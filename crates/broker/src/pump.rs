//! Keeps one subscription readable: opens Google's message stream, watches it, replaces it.
//!
//! That stream repairs some faults itself, ends on others (cancelled, unknown, not found, a clean end), hides its
//! state while it repairs, and waits up to a minute between attempts. So an idle stream is probed through the admin
//! API, and one that was unreachable is replaced as soon as the probe succeeds again.

use crate::connect::Broker;
use crate::delivery::{Capacity, Delivery};
use crate::subscribe::{Connection, FlowLimits};
use google_cloud_pubsub::subscriber::MessageStream;
use rand::Rng;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::Instant;

/// First delay before a broken stream is replaced; doubles up to [`BACKOFF_MAX`] and is spread by jitter.
const BACKOFF_START: Duration = Duration::from_millis(100);
/// Short against the 20 s in which everything must have settled after a fault.
const BACKOFF_MAX: Duration = Duration::from_secs(5);
/// How often an idle stream is probed; a broken one shows well inside the 30 s after which readiness turns false.
const PROBE_EVERY: Duration = Duration::from_secs(5);

struct Pump {
    broker: Broker,
    subscription: String,
    limits: FlowLimits,
    messages: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    deliveries: mpsc::Sender<Delivery>,
    connection: watch::Sender<Connection>,
}

/// Why a stream is given up.
enum End {
    /// Nobody wants more deliveries.
    Stopped,
    /// The stream broke, or was unreachable and the broker is back.
    Broken(String),
}

pub(crate) async fn run(
    broker: Broker,
    subscription: String,
    limits: FlowLimits,
    deliveries: mpsc::Sender<Delivery>,
    connection: watch::Sender<Connection>,
    mut closing: watch::Receiver<bool>,
) {
    let messages = usize::try_from(limits.messages.max(1)).unwrap_or(Semaphore::MAX_PERMITS);
    let bytes = usize::try_from(limits.bytes.max(1)).unwrap_or(Semaphore::MAX_PERMITS);
    let pump = Pump {
        broker,
        subscription,
        limits,
        messages: Arc::new(Semaphore::new(messages.min(Semaphore::MAX_PERMITS))),
        bytes: Arc::new(Semaphore::new(bytes.min(Semaphore::MAX_PERMITS))),
        deliveries,
        connection,
    };
    let mut backoff = BACKOFF_START;
    // Streams given up with deliveries still out: they extend those leases and send their acknowledgements.
    let mut retired = Vec::new();
    loop {
        let opened = Instant::now();
        let mut stream = pump.open();
        let token = stream.shutdown_token();
        let end = tokio::select! {
            end = pump.read(&mut stream) => end,
            () = stop_requested(&mut closing) => End::Stopped,
        };
        drop(stream);
        retired.push(tokio::spawn(async move { token.shutdown().await }));
        retired.retain(|stream| !stream.is_finished());
        let End::Broken(reason) = end else { break };
        metrics::counter!("backline_subscription_reconnects_total", "subscription" => pump.subscription.clone())
            .increment(1);
        tracing::warn!(subscription = pump.subscription, reason, "subscription stream ended, replacing it");
        // A stream that had served for a while gets a fresh start; one that breaks at once must not spin.
        if opened.elapsed() > BACKOFF_MAX * 2 {
            backoff = BACKOFF_START;
        }
        let wait = backoff.mul_f64(rand::rng().random_range(0.5..1.0));
        backoff = (backoff * 2).min(BACKOFF_MAX);
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = stop_requested(&mut closing) => break,
        }
    }
    drop(pump);
    for stream in retired {
        let _ = stream.await;
    }
}

/// Also when the subscription was dropped: then nobody can ask for more.
async fn stop_requested(closing: &mut watch::Receiver<bool>) {
    let _ = closing.wait_for(|closing| *closing).await;
}

impl Pump {
    fn open(&self) -> MessageStream {
        self.broker
            .inner
            .subscriber
            .subscribe(self.broker.subscription_name(&self.subscription))
            .set_max_outstanding_messages(i64::from(self.limits.messages.max(1)))
            .set_max_outstanding_bytes(i64::from(self.limits.bytes.max(1)))
            .build()
    }

    /// Reads until the stream breaks.
    async fn read(&self, stream: &mut MessageStream) -> End {
        let mut seen_down = false;
        loop {
            // Room first: what nobody can work on stays in the client, whose limits hold the broker back.
            let Ok(room) = Arc::clone(&self.messages).acquire_owned().await else { return End::Stopped };
            let mut next = std::pin::pin!(stream.next());
            // At once while nothing is known, so that readiness does not wait for the first delivery.
            let first = if self.is_connecting() { Duration::ZERO } else { PROBE_EVERY };
            let mut probe = std::pin::pin!(self.probe_after(first));
            // `next` is kept across probes: dropping it while the stream opens would restart the opening.
            let arrived = loop {
                let state = tokio::select! {
                    biased;
                    arrived = &mut next => break arrived,
                    state = &mut probe => state,
                };
                if state != Connection::Up {
                    seen_down = true;
                } else if seen_down {
                    // Reachable again, but the client may sleep in its own backoff for up to a minute.
                    self.connection.send_replace(Connection::Connecting);
                    return End::Broken("reachable again after an outage".to_owned());
                }
                self.connection.send_replace(state);
                probe.set(self.probe_after(PROBE_EVERY));
            };
            match arrived {
                Some(Ok((message, handler))) => {
                    seen_down = false;
                    self.connection.send_if_modified(|state| {
                        let changed = *state != Connection::Up;
                        *state = Connection::Up;
                        changed
                    });
                    let size = u32::try_from(message.data.len()).unwrap_or(u32::MAX);
                    let size = size.clamp(1, self.limits.bytes.max(1));
                    let Ok(bytes) = Arc::clone(&self.bytes).acquire_many_owned(size).await else {
                        return End::Stopped;
                    };
                    let capacity = Capacity { _messages: room, _bytes: bytes };
                    if self.deliveries.send(Delivery::new(message, handler, capacity)).await.is_err() {
                        return End::Stopped;
                    }
                }
                Some(Err(error)) => {
                    let reason = error.to_string();
                    self.connection.send_replace(Connection::Down { reason: reason.clone() });
                    return End::Broken(reason);
                }
                None => return End::Broken("the server ended the stream".to_owned()),
            }
        }
    }

    fn is_connecting(&self) -> bool {
        *self.connection.borrow() != Connection::Up
    }

    /// Asks the admin API about the subscription. Without permission to look, silence of the stream is taken as good.
    async fn probe_after(&self, wait: Duration) -> Connection {
        tokio::time::sleep(wait).await;
        match self.broker.probe_subscription(&self.subscription).await {
            Ok(()) => Connection::Up,
            Err(error) if error.is_permission_denied() => Connection::Up,
            Err(error) if error.is_not_found() => Connection::Down {
                reason: format!("{error}; `backline topology apply` makes what a worker declares"),
            },
            Err(error) => Connection::Down { reason: error.to_string() },
        }
    }
}
