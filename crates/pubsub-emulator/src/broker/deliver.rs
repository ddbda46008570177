//! Handing messages to receivers.

use super::{Broker, Subscription};
use crate::state::{Capacity, Queue};
use crate::wire::RawReceivedMessage;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;
use tonic::Status;

/// A registered receiver; dropping it ends the registration, not the leases.
pub(crate) struct Receiver {
    pub(crate) subscription: Arc<Subscription>,
    stream: u64,
    wake: Arc<Notify>,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.subscription.state.lock().queue.close(self.stream);
    }
}

impl Receiver {
    /// Waits until there may be something to take, or the subscription or its faults changed.
    pub(crate) async fn woken(&self) {
        self.wake.notified().await;
    }

    /// Its client sent a frame.
    pub(crate) fn heard(&self) {
        self.subscription.state.lock().queue.heard(self.stream);
    }

    /// Changes the acknowledgement deadline of later deliveries.
    pub(crate) fn set_deadline(&self, deadline: Duration) {
        self.subscription.state.lock().queue.set_deadline(self.stream, deadline);
    }
}

/// One response's worth of messages and the modes they were sent under.
pub(crate) struct Batch {
    pub(crate) messages: Vec<RawReceivedMessage>,
    pub(crate) exactly_once: bool,
    pub(crate) ordered: bool,
}

impl Broker {
    /// Registers a receiver.
    pub(crate) fn open_receiver(
        &self,
        subscription: &Arc<Subscription>,
        messages: usize,
        bytes: usize,
        deadline: Option<Duration>,
        shares: bool,
    ) -> Result<Receiver, Status> {
        let stream = Self::next(&self.next_stream, 1);
        let wake = Arc::new(Notify::new());
        let mut state = subscription.usable()?;
        let seconds = u64::try_from(state.config.ack_deadline_seconds).unwrap_or(10);
        let own = self.config.effective_deadline(Duration::from_secs(seconds));
        let capacity = Capacity { messages, bytes, deadline: deadline.unwrap_or(own), shares };
        state.queue.open(stream, capacity, Arc::clone(&wake));
        drop(state);
        Ok(Receiver { subscription: Arc::clone(subscription), stream, wake })
    }

    /// Takes what the receiver may have now; empty when there is nothing.
    pub(crate) fn take(&self, receiver: &Receiver) -> Result<Batch, Status> {
        let subscription = &receiver.subscription;
        let mut state = subscription.usable()?;
        let taken = state.queue.take(receiver.stream, Instant::now(), |n| self.faults.pick(n));
        if !taken.is_empty() {
            subscription.rearm(&mut state);
        }
        let counts_attempts = state.queue.rules.dead_letter.is_some();
        let (exactly_once, ordered) = (state.queue.rules.exactly_once, state.queue.rules.ordered);
        drop(state);
        self.stats.messages_delivered.add(taken.len() as u64);
        let messages = taken
            .into_iter()
            .map(|delivery| {
                let real =
                    if counts_attempts { i32::try_from(delivery.attempt).unwrap_or(i32::MAX) } else { 0 };
                RawReceivedMessage {
                    ack_id: Queue::ack_id(subscription.id, &delivery).to_string(),
                    message: delivery.stored.wire.clone(),
                    delivery_attempt: self.faults.delivery_attempt(&subscription.name).unwrap_or(real),
                }
            })
            .collect();
        Ok(Batch { messages, exactly_once, ordered })
    }
}
