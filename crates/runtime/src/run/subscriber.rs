//! The subscriber: turns deliveries into durable intents within milliseconds, then acknowledges.

use crate::Error;
use crate::author::{Consumer, Intent};
use crate::claim::{Request, SerialKeys, accept, operation_id, stored_key};
use crate::observe::{Progress, spans};
use crate::run::watermark::Watermark;
use backline_broker::{Delivery, Subscription, SubscriptionSpec};
use backline_envelope::{Attributes, DecodeError, Envelope};
use backline_outbox::{NewOperation, run_tx};
use backline_telemetry::Recording;
use sha2::{Digest, Sha256};
use sqlx::{PgConnection, PgPool};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use time::OffsetDateTime;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Deliveries accepted per transaction.
const BATCH: usize = 500;
/// How long a batch waits for company: acknowledging within milliseconds is part of the contract.
const LINGER: Duration = Duration::from_millis(2);

/// Parked deliveries looked at per transaction.
const PARKED_PAGE: i64 = 100;

/// Parked deliveries remembered as told, 16 bytes each; beyond them all are told of once more.
const TOLD: usize = 10_000;

/// A consumer without its type.
pub(crate) trait AnyConsumer: Send + Sync {
    fn name(&self) -> &'static str;
    fn events(&self) -> &'static [&'static str];
    fn intents(&self, event: &Envelope) -> Result<Vec<Intent>, DecodeError>;
    /// Its subscription when the workload reads `topic`.
    fn subscription(&self, topic: &str) -> SubscriptionSpec;
}

impl<C: Consumer> AnyConsumer for C {
    fn name(&self) -> &'static str {
        C::NAME
    }
    fn events(&self) -> &'static [&'static str] {
        C::EVENTS
    }
    fn intents(&self, event: &Envelope) -> Result<Vec<Intent>, DecodeError> {
        Consumer::intents(self, event)
    }
    fn subscription(&self, topic: &str) -> SubscriptionSpec {
        Consumer::subscription(self, SubscriptionSpec::of_consumer(topic, C::NAME))
    }
}

pub(crate) struct Subscriber {
    pub(crate) pool: PgPool,
    pub(crate) consumer: Arc<dyn AnyConsumer>,
    pub(crate) subscription: Subscription,
    /// Id of the subscription, for spans.
    pub(crate) source: String,
    pub(crate) kick: Arc<Notify>,
    pub(crate) soft: CancellationToken,
    pub(crate) progress: Arc<Progress>,
    pub(crate) grace: Duration,
    pub(crate) watermark: Watermark,
    pub(crate) keys: SerialKeys,
    /// Parked deliveries that were told of as errors, by fingerprint.
    pub(crate) told: Mutex<HashSet<Uuid>>,
}

/// What becomes of one delivery.
enum Reading {
    Accept { event: Uuid, requests: Vec<Request> },
    NotOurs,
    Park { event: Option<Uuid>, state: &'static str, reason: String },
}

impl Subscriber {
    /// Runs until the soft stop, then settles what it holds.
    pub(crate) async fn run(mut self) {
        if let Err(error) = self.take_parked().await {
            tracing::warn!(%error, consumer = self.consumer.name(), "parked deliveries were not looked at");
        }
        loop {
            let batch = self.batch().await;
            self.watermark.hold_back(&self.pool, batch.first(), &self.soft).await;
            if batch.is_empty() {
                break;
            }
            self.take(batch).await;
        }
        if !self.subscription.close(self.grace).await {
            tracing::warn!(
                consumer = self.consumer.name(),
                "deliveries were not settled in time; they come again"
            );
        }
    }

    async fn batch(&mut self) -> Vec<Delivery> {
        let mut batch = Vec::new();
        tokio::select! {
            biased;
            () = self.soft.cancelled() => return batch,
            first = self.subscription.recv() => batch.extend(first),
        }
        let end = Instant::now() + LINGER;
        while batch.len() < BATCH {
            match tokio::time::timeout_at(end, self.subscription.recv()).await {
                Ok(Some(delivery)) => batch.push(delivery),
                Ok(None) | Err(_) => break,
            }
        }
        batch
    }

    /// Makes the batch durable and acknowledges it; a batch the database refuses is tried one by one, and what still
    /// fails goes back to the broker.
    async fn take(&self, batch: Vec<Delivery>) {
        match self.accept(&batch).await {
            Ok(()) => {
                self.progress.beat();
                self.kick.notify_one();
                batch.into_iter().for_each(Delivery::ack);
            }
            Err(error) if batch.len() == 1 => {
                tracing::warn!(%error, consumer = self.consumer.name(), "delivery not accepted; it comes again");
                self.progress.trouble(&error.to_string());
                batch.into_iter().for_each(Delivery::nack);
            }
            Err(error) => {
                tracing::warn!(%error, consumer = self.consumer.name(), "batch not accepted; taking its deliveries one by one");
                for delivery in batch {
                    Box::pin(self.take(vec![delivery])).await;
                }
            }
        }
    }

    async fn accept(&self, batch: &[Delivery]) -> Result<(), Error> {
        let mut events: HashMap<Uuid, Vec<Request>> = HashMap::new();
        let mut parked = Vec::new();
        let since = backline_telemetry::now();
        // Copies may come in one batch as well as later.
        let mut arrived = 0_usize;
        for delivery in batch {
            let attributes: Attributes = delivery.attributes.clone().into_iter().collect();
            match self.read(&attributes, &delivery.data) {
                Reading::Accept { event, requests } => {
                    arrived += 1;
                    events.entry(event).or_insert(requests);
                }
                Reading::NotOurs => {}
                Reading::Park { event, state, reason } => parked.push((delivery, event, state, reason)),
            }
        }
        if events.is_empty() && parked.is_empty() {
            return Ok(());
        }
        let floor = sqlx::query_file_scalar!("sql/seal_floor.sql").fetch_one(&self.pool).await?;
        for delivery in batch {
            let Some(id) = event_id(delivery) else { continue };
            if made_before(id, floor) && events.remove(&id).is_some() {
                let reason = format!("older than the dedupe window, which begins at {floor}");
                parked.push((delivery, Some(id), "beyond-window", reason));
            }
        }
        let ids: Vec<Uuid> = events.keys().copied().collect();
        let received = self.receive(&ids).await?;
        let recorded = self.record(batch, &mut events, since);
        run_tx!(&self.pool, "accept", |tx| async {
            let sealed: HashSet<Uuid> =
                sqlx::query_file_scalar!("sql/seal_deliveries.sql", &ids, self.consumer.name())
                    .fetch_all(&mut *tx)
                    .await?
                    .into_iter()
                    .chain(received.iter().copied())
                    .collect();
            let requests = events
                .iter()
                .filter(|(id, _)| sealed.contains(id))
                .flat_map(|(_, r)| r.iter().cloned())
                .collect();
            accept(tx, requests).await?;
            for (delivery, event, state, reason) in &parked {
                self.park(tx, delivery, *event, state, reason).await?;
            }
            Ok::<_, Error>(sealed)
        })
        .inspect_err(|_| recorded.iter().for_each(|(_, span)| span.failed("not_accepted")))
        .map(|sealed| {
            let seen = u64::try_from(arrived.saturating_sub(sealed.len())).unwrap_or(0);
            if seen > 0 {
                metrics::counter!("backline_deliveries_repeated_total", "consumer" => self.consumer.name())
                    .increment(seen);
            }
            for (event, span) in &recorded {
                span.set("backline.delivery.repeated", !sealed.contains(event));
            }
        })
    }

    /// The spans of deliveries whose traces are sampled. What they lead to hangs below them, but for a context that the
    /// consumer chose itself.
    fn record(
        &self,
        batch: &[Delivery],
        events: &mut HashMap<Uuid, Vec<Request>>,
        since: SystemTime,
    ) -> Vec<(Uuid, Recording)> {
        let span = |delivery: &Delivery| {
            let id = event_id(delivery)?;
            let requests = events.get_mut(&id)?;
            let span = spans::process(&self.source, delivery, since)?;
            let parent = delivery.attributes.get("ce-traceparent");
            for request in requests.iter_mut().filter(|request| request.traceparent.as_ref() == parent) {
                request.traceparent = Some(span.traceparent());
            }
            Some((id, span))
        };
        batch.iter().filter_map(span).collect()
    }

    /// Seeded bug 11: the receipt of a delivery is taken for its completion. Without it nothing happens here.
    async fn receive(&self, ids: &[Uuid]) -> Result<Vec<Uuid>, Error> {
        if !backline_crash_point::seeded_bug(11) {
            return Ok(Vec::new());
        }
        run_tx!(&self.pool, "receive", |tx| async {
            let query = sqlx::query_file_scalar!("sql/seal_deliveries.sql", ids, self.consumer.name());
            Ok::<_, Error>(query.fetch_all(tx).await?)
        })
    }

    /// Accepts what older builds parked because they could not read it.
    async fn take_parked(&self) -> Result<(), Error> {
        let mut after = 0;
        loop {
            let last = run_tx!(&self.pool, "accept_parked", |tx| async {
                let name = self.consumer.name();
                let rows = sqlx::query_file!("sql/take_parked.sql", name, after, PARKED_PAGE)
                    .fetch_all(&mut *tx)
                    .await?;
                let (mut taken, mut events, mut requests) = (Vec::new(), Vec::new(), Vec::new());
                for row in &rows {
                    let attributes = serde_json::from_str(&row.attributes).unwrap_or_default();
                    if let Reading::Accept { event, requests: asked } = self.read(&attributes, &row.data) {
                        taken.push(row.id);
                        events.push((event, asked));
                    }
                }
                let ids: Vec<Uuid> = events.iter().map(|(id, _)| *id).collect();
                let sealed = sqlx::query_file_scalar!("sql/seal_deliveries.sql", &ids, name)
                    .fetch_all(&mut *tx)
                    .await?;
                for (event, asked) in events {
                    if sealed.contains(&event) {
                        requests.extend(asked);
                    }
                }
                accept(tx, requests).await?;
                sqlx::query_file!("sql/unpark.sql", &taken).execute(&mut *tx).await?;
                Ok::<_, Error>(rows.last().map(|row| row.id))
            })?;
            match last {
                Some(id) => after = id,
                None => return Ok(()),
            }
        }
    }

    fn read(&self, attributes: &Attributes, data: &[u8]) -> Reading {
        let event = match Envelope::from_attributes(attributes, data) {
            Ok(event) => event,
            Err(error) => {
                let event = attributes.get("ce-id").and_then(|id| id.parse().ok());
                return Reading::Park { event, state: "poison", reason: error.to_string() };
            }
        };
        if !self.consumer.events().contains(&event.event_type.as_str()) {
            return Reading::NotOurs;
        }
        match self.consumer.intents(&event) {
            Ok(intents) => {
                let mut requests: Vec<Request> =
                    intents.into_iter().map(|Intent::Run(operation)| request(&event, operation)).collect();
                self.keys.apply(&mut requests);
                Reading::Accept { event: event.id, requests }
            }
            Err(error @ DecodeError::Unsupported { .. }) => Reading::Park {
                event: Some(event.id),
                state: "waiting-for-capability",
                reason: error.to_string(),
            },
            Err(error) => Reading::Park { event: Some(event.id), state: "poison", reason: error.to_string() },
        }
    }

    /// Whether this process has not told of this delivery yet: one that the broker brings again and again is one mistake,
    /// and the metric counts how often.
    fn is_news(&self, fingerprint: Uuid) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() >= TOLD {
            told.clear();
        }
        told.insert(fingerprint)
    }

    async fn park(
        &self,
        tx: &mut PgConnection,
        delivery: &Delivery,
        event: Option<Uuid>,
        state: &str,
        reason: &str,
    ) -> Result<(), Error> {
        metrics::counter!("backline_deliveries_parked_total", "consumer" => self.consumer.name(), "state" => state.to_owned())
            .increment(1);
        let mut hash = Sha256::new();
        match event {
            Some(id) => hash.update(id.as_bytes()),
            None => hash.update(&delivery.data),
        }
        let mut fingerprint = [0; 16];
        fingerprint.copy_from_slice(&hash.finalize()[..16]);
        let fingerprint = Uuid::from_bytes(fingerprint);
        let (consumer, id) = (self.consumer.name(), event.map(tracing::field::display));
        if self.is_news(fingerprint) {
            tracing::error!(consumer, event.id = id, state, reason, "delivery parked");
        } else {
            tracing::debug!(consumer, event.id = id, state, reason, "delivery parked again");
        }
        let attributes = serde_json::to_string(&delivery.attributes).unwrap_or_else(|_| "{}".to_owned());
        // jsonb refuses NUL characters; the bytes of the data are kept as they are.
        let attributes = attributes.replace("\\u0000", "\\ufffd");
        sqlx::query_file!(
            "sql/park_delivery.sql",
            self.consumer.name(),
            event,
            state,
            reason,
            attributes,
            &delivery.data[..],
            fingerprint,
        )
        .execute(tx)
        .await?;
        Ok(())
    }
}

fn event_id(delivery: &Delivery) -> Option<Uuid> {
    delivery.attributes.get("ce-id").and_then(|id| id.parse().ok())
}

/// Whether the time bits of an event id are before `floor`; ids of another version count as old.
fn made_before(id: Uuid, floor: OffsetDateTime) -> bool {
    let Some(time) = id.get_timestamp() else { return true };
    i64::try_from(time.to_unix().0).is_ok_and(|seconds| seconds < floor.unix_timestamp())
}

fn request(event: &Envelope, operation: NewOperation) -> Request {
    let key = stored_key(&operation.operation_key);
    Request {
        id: operation_id(operation.organization, &operation.kind, &key),
        kind: operation.kind,
        organization: operation.organization,
        project: operation.project.or(event.project),
        operation_key: key,
        input: operation.input.as_str().to_owned(),
        input_version: operation.input_version,
        delay_ms: operation.delay.map(|d| i64::try_from(d.as_millis()).unwrap_or(i64::MAX)),
        expires_at: operation.expires_at,
        serial_key: operation.serial_key.as_deref().map(stored_key),
        priority: operation.priority,
        correlation_id: operation.correlation_id.unwrap_or(event.correlation_id),
        causation_id: operation.causation_id.or(Some(event.id)),
        traceparent: operation.traceparent.or_else(|| event.traceparent.clone()),
    }
}
