//! A workload: handlers and consumers that share capacity and a provider, from configuration to exit code.

use crate::author::erased::{CommandHandler, ReconcileHandler};
use crate::author::{Command, Consumer, Reconcile};
use crate::claim::{Claimer, LeaseKeeper, SerialKeys};
use crate::finish::{Finisher, Handlers};
use crate::flow::{Budgets, ProviderBudget, refuse_zero};
use crate::observe::{Health, Loops, Progress, Telemetry, serve};
use crate::run::attempt::Attempts;
use crate::run::claim_loop::ClaimLoop;
use crate::run::eager::Eager;
use crate::run::pools::Pools;
use crate::run::subscriber::{AnyConsumer, Subscriber};
use crate::run::sweep::Sweep;
use crate::run::watch::Watch;
use crate::run::watermark::Watermark;
use crate::run::{shutdown, start};
use crate::{Error, run::config::WorkloadConfig};
use backline_broker::{Broker, BrokerConfig, Connection, FlowLimits, Topology};
use backline_outbox::Doorbell;
use metrics_exporter_prometheus::PrometheusHandle;
use sqlx::PgPool;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

pub use crate::run::shutdown::Exit;

/// A loop without a sign of life for this long is stalled: longer than any transaction, far shorter than a pager.
const STALLED_AFTER: Duration = Duration::from_secs(30);

/// Handlers, consumers and limits of one process.
pub struct Workload {
    name: String,
    config: WorkloadConfig,
    handlers: Handlers,
    consumers: Vec<Arc<dyn AnyConsumer>>,
    budgets: HashMap<String, ProviderBudget>,
    metrics: Option<PrometheusHandle>,
    /// Flushed when the workload is over.
    telemetry: Option<Telemetry>,
    /// Rung by this process's own accepts and by its application.
    kick: Arc<Notify>,
}

impl Workload {
    /// A workload without handlers.
    #[must_use]
    pub fn new(name: impl Into<String>, config: WorkloadConfig) -> Self {
        Self {
            name: name.into(),
            config,
            handlers: Handlers::new(),
            consumers: Vec::new(),
            budgets: HashMap::new(),
            metrics: None,
            telemetry: None,
            kick: Arc::default(),
        }
    }

    /// Adds a handler of commands or events with frozen inputs.
    #[must_use]
    pub fn command<H: Command>(mut self, handler: H) -> Self {
        let spec = handler.spec();
        self.handlers.insert(H::KIND, Arc::new(CommandHandler { inner: handler, spec }));
        self
    }

    /// Adds a handler of a desired state.
    #[must_use]
    pub fn reconcile<H: Reconcile>(mut self, handler: H) -> Self {
        let spec = handler.spec();
        self.handlers.insert(H::KIND, Arc::new(ReconcileHandler { inner: handler, spec }));
        self
    }

    /// Adds a consumer of events.
    #[must_use]
    pub fn consumer<C: Consumer>(mut self, consumer: C) -> Self {
        self.consumers.push(Arc::new(consumer));
        self
    }

    /// Limits a provider account, fleet-wide.
    #[must_use]
    pub fn budget(mut self, provider_account: impl Into<String>, budget: ProviderBudget) -> Self {
        self.budgets.insert(provider_account.into(), budget);
        self
    }

    /// Serves this recorder's metrics.
    #[must_use]
    pub fn metrics(mut self, handle: PrometheusHandle) -> Self {
        self.metrics = Some(handle);
        self
    }

    pub(crate) fn telemetry(mut self, telemetry: Telemetry) -> Self {
        self.telemetry = Some(telemetry);
        self
    }

    /// For an application that runs the workload in its own process: a handle to tell it about commits, and to wait a
    /// bounded time for an operation's end. The attempt is made by the workload, under the same claim as any other.
    ///
    /// ```no_run
    /// # use backline_runtime::{Error, Exit, Status, Workload};
    /// # use std::time::Duration;
    /// # use tokio_util::sync::CancellationToken;
    /// # async fn place_order() -> Result<uuid::Uuid, sqlx::Error> { Ok(uuid::Uuid::nil()) }
    /// # async fn example(workload: Workload) -> Result<(), Box<dyn std::error::Error>> {
    /// let eager = workload.eager();
    /// let (soft, hard) = (CancellationToken::new(), CancellationToken::new());
    /// let running = tokio::spawn(workload.run_until(soft.clone(), hard));
    ///
    /// // A request: its rows and `backline.enqueue_operation` in one transaction, which is committed here.
    /// let operation = place_order().await?;
    /// eager.committed();
    /// match eager.outcome(operation, Duration::from_millis(500)).await {
    ///     Status::Ended { outcome, .. } => println!("{}", outcome.as_str()),
    ///     Status::Open { .. } => println!("accepted"),
    /// }
    /// # soft.cancel();
    /// # running.await??;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn eager(&self) -> Eager {
        Eager::new(Arc::clone(&self.kick), &self.config, &self.name)
    }

    /// The topics and subscriptions that its consumers need: what it reads itself, and what `--topology` prints.
    #[must_use]
    pub fn topology(&self) -> Topology {
        Topology { declared_by: self.name.clone(), ..topology(&self.config, &self.consumers) }
    }

    /// Runs until SIGTERM or SIGINT: soft at the first (no new claims, attempts in flight end), hard at the second or
    /// when the grace is over. The exit tells which it was.
    ///
    /// # Errors
    /// A setting that does not fit, `DATABASE_URL` among them, or a schema that is not this build's. A database that does
    /// not answer is waited for.
    pub async fn run(self) -> Result<Exit, Error> {
        let soft = CancellationToken::new();
        let hard = CancellationToken::new();
        shutdown::on_signals(soft.clone(), hard.clone());
        self.run_until(soft, hard).await
    }

    /// As [`run`](Self::run), stopped by tokens instead of signals.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub async fn run_until(
        mut self,
        soft: CancellationToken,
        hard: CancellationToken,
    ) -> Result<Exit, Error> {
        // Last to go: what is logged while everything else stops is still exported.
        let _telemetry = self.telemetry.take();
        if self.config.topology {
            let text = serde_json::to_string_pretty(&self.topology());
            println!("{}", text.map_err(|e| Error::Setting { name: "topology", reason: e.to_string() })?);
            return Ok(Exit::Drained);
        }
        let capacity = self.config.capacity.clone();
        capacity.check()?;
        for handler in self.handlers.values() {
            capacity.check_request(handler.kind(), handler.spec().request_timeout)?;
        }
        refuse_zero(&[
            ("BACKLINE_SWEEP", self.config.sweep),
            ("BACKLINE_REOFFER_AFTER", self.config.reoffer_after),
        ])?;
        let process = Uuid::new_v4();
        let pools = Pools::new(&self.config, &self.name)?;
        // Pages from the beginning: whoever waits for a database is alive and says what it waits for.
        let starting = Arc::new(Progress::new("start", Duration::ZERO));
        let moving = Arc::default();
        let health = Health {
            starting: Arc::clone(&starting),
            loops: Arc::clone(&moving),
            stopping: soft.clone(),
            pool: pools.views.clone(),
            metrics: self.metrics,
        };
        let pages = CancellationToken::new();
        let _pages = pages.clone().drop_guard();
        if let Some(listen) = self.config.health_listen {
            let address = serve(health, listen, pages).await?;
            // Harnesses and people read the port from here when it was left to the system.
            println!("listening on {address}");
        }
        let beginning = start::begin(&pools, capacity.acquire_timeout, &starting, &self.name, &self.handlers);
        tokio::select! {
            biased;
            () = soft.cancelled() => return Ok(Exit::Drained),
            begun = beginning => begun?,
        }
        let budgets = Budgets::declare(pools.work.clone(), process, self.budgets).await?;

        let handlers = Arc::new(self.handlers);
        let keys = SerialKeys::new(Arc::clone(&handlers));
        let kinds = keys.kinds();
        let keeper = LeaseKeeper::new(capacity.lease, process);
        let heartbeat = CancellationToken::new();
        let watch = Watch::new(soft.clone());
        let renewing = keeper.clone().keep(pools.heartbeat.clone(), heartbeat.clone());
        let heart = tokio::spawn(watch.over("heartbeat", renewing));
        let slices = tokio::spawn(watch.over("budget", budgets.clone().keep(heartbeat.clone())));
        let own = usize::try_from(capacity.connections).unwrap_or(8);
        let kick = self.kick;
        let (finisher, ends) =
            Finisher::new(pools.work.clone(), Arc::clone(&handlers), Arc::clone(&kick), own);
        let finishing = tokio::spawn(watch.over("finisher", finisher.run()));
        let claiming = Arc::new(Progress::new("claim loop", STALLED_AFTER));
        let running = TaskTracker::new();
        let repeats: Vec<i32> = handlers
            .values()
            .map(|h| i32::try_from(h.spec().policy.max_attempts).unwrap_or(i32::MAX))
            .collect();
        let bell = if self.config.polling_only {
            Doorbell::polling(&pools.bell, "backline_intake")
        } else {
            Doorbell::listen(&pools.bell, "backline_intake")
        };
        let claims = ClaimLoop {
            claimer: Claimer::new(
                pools.work.clone(),
                kinds.clone(),
                repeats,
                owner(&self.name),
                keeper,
                keys.clone(),
                capacity.commit_lag,
            ),
            attempts: Attempts { pool: pools.work.clone(), budgets },
            handlers,
            capacity: Arc::new(Semaphore::new(capacity.operations)),
            batch_size: capacity.claim_batch.min(capacity.operations),
            finisher: ends.clone(),
            bell,
            kick: Arc::clone(&kick),
            poll: capacity.poll,
            soft: soft.clone(),
            hard: hard.clone(),
            progress: Arc::clone(&claiming),
            running: running.clone(),
        };
        let loops = TaskTracker::new();
        let mut streams = Vec::new();
        for subscriber in
            subscribers(&self.config, &pools.work, self.consumers, &keys, &kick, &soft, &mut streams).await?
        {
            loops.spawn(watch.over("subscriber", subscriber.run()));
        }
        let _ = moving.set(Loops { progress: vec![claiming], streams });
        let sweep = Sweep { pool: pools.work.clone(), kinds, every: self.config.sweep, soft: soft.clone() };
        sweep.before_claims().await;
        let swept = Arc::clone(&kick);
        loops.spawn(watch.over("sweep", async move { sweep.run(&swept).await }));
        tracing::info!(workload = self.name, %process, "started");
        println!("ready");
        loops.spawn(watch.over("claim loop", claims.run()));
        loops.close();
        soft.cancelled().await;
        tracing::info!(workload = self.name, "stopping: no new claims");

        // The loops end by themselves at the soft stop; attempts in flight have the grace.
        running.close();
        let drained = tokio::select! {
            () = async { loops.wait().await; running.wait().await } => true,
            () = tokio::time::sleep(capacity.grace) => false,
            () = hard.cancelled() => false,
        };
        hard.cancel();
        drop(ends);
        // Attempts drop their work at once now; what they ended before is still written.
        let written = tokio::time::timeout(capacity.acquire_timeout, finishing).await.is_ok();
        heartbeat.cancel();
        heart.abort();
        // The last slices go back; what cannot be given back runs out.
        let _ = tokio::time::timeout(capacity.acquire_timeout, slices).await;
        tracing::info!(workload = self.name, drained, written, "stopped");
        if let Some(name) = watch.panicked() {
            return Err(Error::Panicked(name));
        }
        Ok(if drained && written { Exit::Drained } else { Exit::Abandoned })
    }
}

/// What these consumers need, whoever asks: the subscribers themselves, an emulator, or `--topology`.
fn topology(config: &WorkloadConfig, consumers: &[Arc<dyn AnyConsumer>]) -> Topology {
    let subscriptions = consumers.iter().map(|one| one.subscription(&config.topic)).collect();
    Topology { subscriptions, ..Topology::default() }
}

async fn subscribers(
    config: &WorkloadConfig,
    pool: &PgPool,
    consumers: Vec<Arc<dyn AnyConsumer>>,
    keys: &SerialKeys,
    kick: &Arc<Notify>,
    soft: &CancellationToken,
    streams: &mut Vec<(&'static str, watch::Receiver<Connection>)>,
) -> Result<Vec<Subscriber>, Error> {
    if consumers.is_empty() {
        return Ok(Vec::new());
    }
    let broker_error = |error: &dyn std::fmt::Display| Error::Broker(error.to_string());
    let broker = BrokerConfig::new(config.pubsub_project.clone(), config.pubsub_emulator_host.clone());
    let broker = Broker::connect(broker).await.map_err(|e| broker_error(&e))?;
    if config.pubsub_emulator_host.is_some() {
        // An emulator starts empty; for the real service `backline topology apply` makes the same.
        broker.ensure(&topology(config, &consumers)).await.map_err(|e| broker_error(&e))?;
    }
    let mut started = Vec::new();
    for consumer in consumers {
        let types: Vec<String> = consumer.events().iter().map(|t| (*t).to_owned()).collect();
        let reoffer = i64::try_from(config.reoffer_after.as_millis()).unwrap_or(i64::MAX);
        sqlx::query_file!("sql/declare_consumer.sql", &types, consumer.name(), reoffer).execute(pool).await?;
        let subscription = consumer.subscription(&config.topic).subscription;
        let limits = FlowLimits {
            messages: u32::try_from(config.capacity.deliveries).unwrap_or(u32::MAX),
            bytes: u32::try_from(config.capacity.delivery_bytes).unwrap_or(u32::MAX),
        };
        let stream = broker.subscribe(&subscription, limits);
        let progress = Arc::new(Progress::new(consumer.name(), Duration::MAX));
        streams.push((consumer.name(), stream.connected()));
        started.push(Subscriber {
            pool: pool.clone(),
            consumer,
            subscription: stream,
            source: subscription,
            kick: Arc::clone(kick),
            soft: soft.clone(),
            progress,
            grace: config.capacity.grace / 2,
            watermark: Watermark::new(keys.kinds(), config.capacity.ready_watermark),
            keys: keys.clone(),
            told: std::sync::Mutex::default(),
        });
    }
    Ok(started)
}

/// Host and process, for people; identity is the random process id.
fn owner(name: &str) -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    format!("{name}@{host}:{}", std::process::id())
}
