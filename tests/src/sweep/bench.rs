//! A product with replaceable relays and workers, and a producer of payments.

use crate::check::promised;
use crate::programs::{Addresses, EMULATOR, PAYMENTS, RELAY, SANDBOX, Settings, local, relay, worker};
use crate::sweep::invariants::Intended;
use crate::sweep::rooms::Rooms;
use crate::{CrashPlan, LIMIT, Member, Ready, Stack, TimedOut, eventually, http};
use anyhow::Context;
use backline_dev_cluster::paths;
use backline_dev_cluster::process::{Launch, free_port};
use serde_json::json;
use std::net::SocketAddr;
use std::time::Duration;
use uuid::Uuid;

/// A connected account that does not exist: transfers to it are refused for good.
const NOBODY: &str = "acct_nobody";

/// Broker, provider and database of one run; relays and workers come and go by name.
pub struct Bench {
    stack: Stack,
    at: Addresses,
    /// Told to every relay and worker on top of its settings.
    env: Vec<(String, String)>,
    organization: Uuid,
    base: Option<String>,
    sets: u32,
    intended: Vec<Intended>,
    patience: Duration,
    /// The other producer, where there is one.
    pub(super) rooms: Option<Rooms>,
}

impl Bench {
    /// Broker, provider and database, on a server of its own when it shall be broken. `env` is told to every relay and
    /// worker that is added.
    ///
    /// # Errors
    /// A program is missing or does not start.
    pub async fn start(own_server: bool, env: &[(&str, String)]) -> anyhow::Result<Bench> {
        let plan = Stack::builder()
            .without_relay()
            .env(SANDBOX, "SANDBOX_SETTLE_AFTER", "200ms")
            // What a dead worker had in hand is blocked, with everything of its ordering keys, for this long; the
            // client asks for a minute.
            .env(EMULATOR, "PUBSUB_EMULATOR_ACK_DEADLINE_CAP", "1000");
        let mut stack = if own_server { plan.own_server() } else { plan }.start().await?;
        let name: String = sqlx::query_scalar("select current_database()").fetch_one(stack.pool()).await?;
        let at = Addresses {
            database_url: stack.server().url(&name),
            emulator: stack.member(EMULATOR)?.address()?,
            sandbox: stack.member(SANDBOX)?.address()?,
            effects: stack.effects().address(),
        };
        let env = env.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        http::must(
            at.sandbox,
            "POST",
            "/control",
            &json!({"action": "account", "id": NOBODY, "state": "missing"}),
        )?;
        Ok(Bench {
            stack,
            at,
            env,
            organization: Uuid::now_v7(),
            base: None,
            sets: 0,
            intended: Vec::new(),
            patience: LIMIT,
            rooms: None,
        })
    }

    /// Adds a relay that is not started yet. Its timers are the shortest that still leave a request room.
    ///
    /// # Errors
    /// The program is missing.
    pub fn add_relay(&mut self, name: &str, env: &[(&str, String)]) -> anyhow::Result<()> {
        let health = local(free_port()?);
        let mut settings = relay(&self.at, health);
        settings.extend([
            ("PUBSUB_PROJECT_ID", crate::programs::PROJECT.to_owned()),
            ("BACKLINE_RELAY_PUBLISH_TIMEOUT", "700ms".to_owned()),
            ("BACKLINE_RELAY_LEASE", "1500ms".to_owned()),
            ("BACKLINE_RELAY_COMMIT_LAG", "500ms".to_owned()),
            ("BACKLINE_RELAY_UNMARKED_EVERY", "500ms".to_owned()),
            ("BACKLINE_RELAY_REOFFER_EVERY", "300ms".to_owned()),
        ]);
        self.add(name, RELAY, settings, env, Ready::Answers(health))
    }

    /// Adds a payments worker that is not started yet.
    ///
    /// # Errors
    /// The program is missing.
    pub fn add_worker(&mut self, name: &str, env: &[(&str, String)]) -> anyhow::Result<()> {
        let health = local(free_port()?);
        let mut settings = self.quick_worker(health);
        settings.extend([
            ("BACKLINE_REOFFER_AFTER", "800ms".to_owned()),
            ("STRIPE_REQUEST_TIMEOUT", "795ms".to_owned()),
            ("STRIPE_LINGER", "200ms".to_owned()),
            ("STRIPE_LOOKUP_LAG", "200ms".to_owned()),
            ("STRIPE_SETTLEMENT_POLL", "50ms".to_owned()),
        ]);
        self.add(name, PAYMENTS, settings, env, Ready::Answers(health))
    }

    /// Settings of a worker whose lease runs out soon: just above 2.25 times the request timeout, as it has to be. A third of
    /// the lease, a renewal's interval, is shorter than a request that is slowed down.
    pub(super) fn quick_worker(&self, health: SocketAddr) -> Settings {
        let mut settings = worker(&self.at, health);
        settings.extend([
            ("BACKLINE_LEASE", "1800ms".to_owned()),
            ("BACKLINE_ACQUIRE_TIMEOUT", "1200ms".to_owned()),
        ]);
        settings
    }

    pub(super) fn add(
        &mut self,
        name: &str,
        program: &str,
        settings: Settings,
        env: &[(&str, String)],
        ready: Ready,
    ) -> anyhow::Result<()> {
        let launch = Launch::new(paths::binary(program)?, self.stack.dir().join(format!("{name}.log")))
            .envs(settings)
            .envs(self.env.clone())
            .envs(env.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        self.stack.admit(name, Member::new(launch, ready));
        Ok(())
    }

    /// A relay or worker by the name it was added under.
    ///
    /// # Errors
    /// There is none.
    pub fn member(&mut self, name: &str) -> anyhow::Result<&mut Member> {
        self.stack.member(name)
    }

    /// Starts a member with a fault armed and returns once the fault has fired.
    ///
    /// # Errors
    /// It does not fire.
    pub async fn launch_until_fired(&mut self, name: &str, plan: &CrashPlan) -> anyhow::Result<()> {
        self.member(name)?.launch_with(plan)?;
        eventually("the fault to happen", async || Ok(plan.fired())).await
    }

    /// Broker, provider and database.
    pub fn stack(&mut self) -> &mut Stack {
        &mut self.stack
    }

    /// The database, reached through another port: a proxy's.
    #[must_use]
    pub fn database_url_at(&self, port: u16) -> String {
        let (head, name) = self.at.database_url.rsplit_once('/').unwrap_or_default();
        let host = head.rsplit_once(':').map_or(head, |(host, _)| host);
        format!("{host}:{port}/{name}")
    }

    /// The tenant of all payments of this bench.
    #[must_use]
    pub fn organization(&self) -> Uuid {
        self.organization
    }

    /// What the producer has committed so far: the driver's journal.
    #[must_use]
    pub fn intended(&self) -> &[Intended] {
        &self.intended
    }

    /// One transfer that later sets of payments take back in part. Needs a running relay and worker.
    ///
    /// # Errors
    /// It does not settle.
    pub async fn settle_base(&mut self) -> anyhow::Result<()> {
        self.transfer("base", 1_000_000, "acct_base").await?;
        self.settled().await?;
        let journal = self.stack.journal()?;
        let line = journal.iter().find(|line| line["applied"] == true).context("the base was not applied")?;
        self.base = line["object_id"].as_str().map(str::to_owned);
        Ok(())
    }

    /// Commits one set: a transfer that works, one that is refused, and a reversal of the base where there is one.
    ///
    /// # Errors
    /// The database refuses it.
    pub async fn pay(&mut self) -> anyhow::Result<()> {
        self.sets += 1;
        let set = self.sets;
        self.transfer(&format!("good-{set}"), 1_000 + i64::from(set), "acct_payee").await?;
        self.transfer(&format!("bad-{set}"), 500, NOBODY).await?;
        if let Some(transfer) = self.base.clone() {
            let id = format!("back-{set}");
            let instruction = json!({"transfer": transfer, "amount": {"minor": 1, "currency": "eur"}});
            let payload = json!({"payment_id": "base", "reversal_id": id, "authorization": "a", "instruction": instruction});
            self.stack.emit("ReversalAuthorized", self.organization, &id, payload).await?;
            self.intended.push(Intended::new(self.organization, "stripe.reversal", &id, "succeeded"));
        }
        Ok(())
    }

    /// Commits one transfer; to the account that does not exist it shall be rejected.
    ///
    /// # Errors
    /// The database refuses it.
    pub async fn transfer(&mut self, payment: &str, minor: i64, destination: &str) -> anyhow::Result<Uuid> {
        let instruction = json!({"type": "transfer", "amount": {"minor": minor, "currency": "eur"}, "destination": destination});
        let payload = json!({"payment_id": payment, "authorization": "a", "instruction": instruction});
        self.stack.emit("PaymentAuthorized", self.organization, payment, payload).await?;
        let outcome = if destination == NOBODY { "rejected" } else { "succeeded" };
        let intended = Intended::new(self.organization, "stripe.transfer", payment, outcome);
        let id = intended.operation();
        self.intended.push(intended);
        Ok(id)
    }

    /// Asks for one transfer directly, without an event.
    ///
    /// # Errors
    /// The database refuses it.
    pub async fn request_transfer(&mut self, payment: &str, minor: i64) -> anyhow::Result<Uuid> {
        let instruction = json!({"amount": {"minor": minor, "currency": "eur"}, "destination": "acct_payee"});
        let input = json!({"payment_id": payment, "authorization": "a", "instruction": instruction});
        self.intended.push(Intended::new(self.organization, "stripe.transfer", payment, "succeeded"));
        Ok(self.stack.enqueue("stripe.transfer", self.organization, payment, input).await?)
    }

    /// Waits until nothing is on its way: the settle phase. Dead, manual and parked work is at rest; whether it may be
    /// is for the invariants to say.
    ///
    /// # Errors
    /// Something stays on its way.
    pub async fn settled(&mut self) -> anyhow::Result<()> {
        let what = "everything to come to rest";
        let waited =
            tokio::time::timeout(self.patience, eventually(what, async || self.at_rest().await)).await;
        match waited {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => drop(error.downcast::<TimedOut>()?),
            Err(_elapsed) => {}
        }
        let intended = self.intended.iter().map(Intended::operation).collect::<Vec<_>>();
        let open: Vec<String> = sqlx::query_scalar(OPEN).bind(intended).fetch_all(self.stack.pool()).await?;
        let broker = http::call(self.at.emulator, "GET", "/stats", &serde_json::Value::Null)?.1;
        let held: Vec<String> = sqlx::query_scalar(HELD).fetch_all(self.stack.pool()).await?;
        promised(false, || format!("timed out waiting for {what}: {open:?}; {held:?}; the broker: {broker}"))
    }

    /// Waits no longer than this for rest.
    pub fn be_patient_for(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// A dead process's share of the provider's concurrency comes back after five seconds by itself, which is another
    /// test's matter; here it would be most of what a run waits for.
    ///
    /// # Errors
    /// The database is out of reach.
    pub async fn forget_slices(&self) -> anyhow::Result<()> {
        sqlx::query("delete from backline.budget_slice").execute(self.pool()).await?;
        Ok(())
    }

    /// Whether nothing is on its way at this moment.
    ///
    /// # Errors
    /// The database is out of reach.
    pub async fn at_rest(&self) -> anyhow::Result<bool> {
        let (open, ended): (i64, i64) = sqlx::query_as(MOVING)
            .bind(self.intended.iter().map(Intended::operation).collect::<Vec<_>>())
            .fetch_one(self.stack.pool())
            .await?;
        Ok(open == 0 && usize::try_from(ended).is_ok_and(|ended| ended == self.intended.len()))
    }

    /// Broker, provider and database, for questions.
    #[must_use]
    pub fn parts(&self) -> &Stack {
        &self.stack
    }

    /// The test's own connections.
    #[must_use]
    pub fn pool(&self) -> &sqlx::PgPool {
        self.stack.pool()
    }
}

/// What moves, and how many of the intended operations have an end of some kind (an outcome, or a person's turn).
const MOVING: &str = "select
    (select count(*) from backline.operation where state in ('ready', 'running', 'unknown', 'waiting'))
  + (select count(*) from backline.intake) + (select count(*) from backline.outbox where parked_at is null),
    (select count(distinct id) from (select id from backline.operation_history where id = any($1)
        union all select id from backline.operation where id = any($1) and state in ('dead', 'manual')) e)";

/// Who holds what it is waited for: leases, and sessions that do or wait for something.
const HELD: &str = "select format('lease of %s for %s more', owner, until - clock_timestamp()) from backline.lease
    union all select format('session %s %s %s/%s blocked by %s: %s', pid, state, wait_event_type, wait_event, pg_blocking_pids(pid),
        left(regexp_replace(query, '\\s+', ' ', 'g'), 120)) from pg_stat_activity
     where datname = current_database() and state <> 'idle' and pid <> pg_backend_pid()";

const OPEN: &str =
    "select format('%s %s %s %s', kind, operation_key, state, failure_code) from backline.operation
    union all select 'intake ' || operation_key from backline.intake
    union all select format('outbox %s %s %s', event_type, aggregate_id, parked_reason) from backline.outbox
    union all select format('never accepted %s', id) from unnest($1::uuid[]) intended(id)
        where not exists (select from backline.operation o where o.id = intended.id)
          and not exists (select from backline.operation_history h where h.id = intended.id)";
