//! A subscription: its settings, its queue and its timer.

use super::Broker;
use super::subscription_rules::rules;
use crate::filter::Filter;
use crate::persist::{Acked, Failed, Kind};
use crate::state::{Effects, Queue, forwarded};
use crate::wire::now_nanos;
use googleapis_tonic_google_pubsub_v1::google::pubsub::v1 as pb;
use parking_lot::{Mutex, MutexGuard};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;
use tonic::Status;

/// A subscription.
pub(crate) struct Subscription {
    pub(crate) name: Arc<str>,
    /// Part of acknowledgement ids: those of a deleted namesake are not ours.
    pub(crate) id: u64,
    pub(super) state: Mutex<SubscriptionState>,
    /// Tells the timer that something is due earlier than it thinks.
    timer: Notify,
}

/// What changes about a subscription.
pub(super) struct SubscriptionState {
    pub(super) config: pb::Subscription,
    pub(super) filter: Option<Filter>,
    pub(super) queue: Queue,
    pub(super) deleted: bool,
    /// When the timer wakes next.
    armed: Option<Instant>,
}

impl SubscriptionState {
    /// Forgets acknowledged messages that are past their retention.
    pub(super) fn forget_old(&mut self) {
        let kept = self.config.message_retention_duration.as_ref().map_or(0, |d| d.seconds);
        self.queue.forget_retained(now_nanos().saturating_sub(kept.saturating_mul(1_000_000_000)));
    }
}

impl Subscription {
    /// Makes a subscription from checked settings; `backoff_cap` as in [`rules`].
    pub(super) fn new(
        config: pb::Subscription,
        id: u64,
        first_lease: u64,
        backoff_cap: Option<Duration>,
    ) -> Result<Self, Status> {
        let filter = Filter::parse(&config.filter).map_err(|e| Status::invalid_argument(e.to_string()))?;
        Ok(Self {
            name: Arc::from(config.name.as_str()),
            id,
            state: Mutex::new(SubscriptionState {
                filter,
                queue: Queue::new(rules(&config, backoff_cap), first_lease),
                config,
                deleted: false,
                armed: None,
            }),
            timer: Notify::new(),
        })
    }

    pub(crate) fn config(&self) -> pb::Subscription {
        self.state.lock().config.clone()
    }

    /// Messages not acknowledged, out at clients, and what each open receiver holds of them.
    pub(crate) fn sizes(&self) -> (usize, usize, Vec<usize>) {
        let state = self.state.lock();
        (state.queue.unacked(), state.queue.leased(), state.queue.held())
    }

    /// Wakes all receivers, so that they look at faults again.
    pub(crate) fn wake_all(&self) {
        self.state.lock().queue.wake_all();
    }

    /// The state, unless the subscription cannot be pulled from.
    pub(super) fn usable(&self) -> Result<MutexGuard<'_, SubscriptionState>, Status> {
        let state = self.state.lock();
        if state.deleted {
            return Err(super::missing("subscription", &self.name));
        }
        if state.config.detached {
            return Err(Status::failed_precondition(format!("subscription {:?} is detached", self.name)));
        }
        Ok(state)
    }

    /// Tells the timer when something is due before it would wake.
    pub(super) fn rearm(&self, state: &mut SubscriptionState) {
        let due = state.queue.next_due();
        if due.is_some_and(|due| state.armed.is_none_or(|armed| due < armed)) {
            state.armed = due;
            self.timer.notify_one();
        }
    }

    /// Ends the timer and every receiver.
    pub(super) fn retire(&self) {
        let mut state = self.state.lock();
        state.deleted = true;
        state.queue.wake_all();
        drop(state);
        self.timer.notify_one();
    }
}

impl Broker {
    /// Runs expiries and scheduled redeliveries of one subscription. Sleeps until something is due.
    pub(super) fn start_timer(self: &Arc<Self>, subscription: &Arc<Subscription>) {
        let (broker, subscription) = (Arc::downgrade(self), Arc::clone(subscription));
        let stopping = self.stopping.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = run_timer(&broker, &subscription) => {}
                () = stopping.cancelled() => {}
            }
        });
    }

    fn on_time(&self, subscription: &Subscription, now: Instant) -> Result<Option<Instant>, ()> {
        let mut state = subscription.state.lock();
        if state.deleted {
            return Err(());
        }
        state.queue.attempt_shift = self.faults.dead_letter_shift();
        let mut effects = Effects::default();
        let expired = state.queue.expire(now, &mut effects);
        state.queue.release_due(now);
        state.armed = state.queue.next_due();
        let due = state.armed;
        // An expiry that cannot be written down is only a lost count.
        let _ = self.write_effects(subscription, &effects);
        drop(state);
        self.stats.leases_expired.add(expired);
        self.forward(subscription, effects);
        Ok(due)
    }

    /// Writes what is settled and what failed. Called under the subscription's lock.
    pub(super) fn write_effects(&self, subscription: &Subscription, effects: &Effects) -> Result<(), Status> {
        if !effects.failed.is_empty() {
            self.persist(|| {
                let (positions, failures) = effects.failed.iter().copied().unzip();
                Kind::Failed(Failed { subscription: subscription.name.to_string(), positions, failures })
            })?;
        }
        if !effects.settled.is_empty() {
            self.persist(|| {
                let positions = effects.settled.clone();
                Kind::Acked(Acked { subscription: subscription.name.to_string(), positions })
            })?;
        }
        Ok(())
    }

    /// Publishes dead letters; the subscription's lock must not be held.
    pub(super) fn forward(&self, subscription: &Subscription, effects: Effects) {
        if effects.forward.is_empty() {
            return;
        }
        if self.faults.dead_letter_shift() != 0 {
            self.faults.count_shifted(effects.forward.len() as u64);
        }
        for dead in effects.forward {
            let reached = self.dead_letter(subscription, &dead);
            if let Err(status) = &reached {
                tracing::warn!(
                    subscription = &*subscription.name,
                    error = status.message(),
                    "dead letter kept"
                );
            }
            let mut state = subscription.state.lock();
            let effects = state.queue.finish_forward(dead.position, reached.is_ok(), Instant::now());
            let _ = self.write_effects(subscription, &effects);
            subscription.rearm(&mut state);
        }
    }

    fn dead_letter(&self, subscription: &Subscription, dead: &crate::state::Forward) -> Result<(), Status> {
        let topic = self.topic(&dead.topic)?;
        for _ in 0..self.faults.dead_letter_copies() {
            let message = forwarded(dead, &subscription.name)
                .map_err(|e| Status::internal(format!("dead letter: {e}")))?;
            self.accept(&topic, vec![message])?;
            self.stats.dead_lettered.add(1);
        }
        Ok(())
    }
}

async fn run_timer(broker: &Weak<Broker>, subscription: &Subscription) {
    loop {
        let due = {
            let Some(broker) = broker.upgrade() else { return };
            match broker.on_time(subscription, Instant::now()) {
                Ok(due) => due,
                Err(()) => return,
            }
        };
        match due {
            Some(due) => tokio::select! {
                () = tokio::time::sleep_until(due) => {}
                () = subscription.timer.notified() => {}
            },
            None => subscription.timer.notified().await,
        }
    }
}
