//! Everything that runs in production, small and breakable.

use crate::member::Ready;
use crate::programs::{self, Addresses, EMULATOR, PROJECT, RELAY, SANDBOX, Settings, TOPIC, local};
use crate::{Database, Effects, Fixture, Member, PgProxy, Server, http};
use anyhow::Context;
use backline_dev_cluster::paths;
use backline_dev_cluster::process::{Launch, free_port};
use serde_json::{Value, json};
use sqlx::PgPool;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What a [`Stack`] shall consist of.
#[derive(Default)]
pub struct StackBuilder {
    own_server: bool,
    without_relay: bool,
    workers: Vec<(String, String)>,
    later: Vec<String>,
    relays: Vec<String>,
    proxied: bool,
    subscriptions: Vec<String>,
    env: BTreeMap<String, Vec<(String, String)>>,
    args: BTreeMap<String, Vec<String>>,
    record: bool,
    fixture: Option<Fixture>,
}

impl StackBuilder {
    /// Over what an earlier version left, instead of an empty database and a provider without memory.
    #[must_use]
    pub fn restored(mut self, fixture: Fixture) -> StackBuilder {
        self.fixture = Some(fixture);
        self
    }

    /// On a PostgreSQL of its own, which the test may kill, restart and fail over.
    #[must_use]
    pub fn own_server(mut self) -> StackBuilder {
        self.own_server = true;
        self
    }

    /// Without a relay: committed events stay in the outbox.
    #[must_use]
    pub fn without_relay(mut self) -> StackBuilder {
        self.without_relay = true;
        self
    }

    /// With a worker, by its binary's name; the name is also how the test speaks of it.
    #[must_use]
    pub fn worker(self, binary: &str) -> StackBuilder {
        self.worker_as(binary, binary)
    }

    /// With a worker under a name of its own: several processes of one binary.
    #[must_use]
    pub fn worker_as(mut self, name: &str, binary: &str) -> StackBuilder {
        self.workers.push((name.to_owned(), binary.to_owned()));
        self
    }

    /// As [`StackBuilder::worker_as`], not started: the test starts it by name.
    #[must_use]
    pub fn later(mut self, name: &str, binary: &str) -> StackBuilder {
        self.later.push(name.to_owned());
        self.worker_as(name, binary)
    }

    /// With one more relay under a name of its own, not started.
    #[must_use]
    pub fn relay_later(mut self, name: &str) -> StackBuilder {
        self.relays.push(name.to_owned());
        self.later.push(name.to_owned());
        self
    }

    /// With a proxy between the programs and PostgreSQL, for faults of the network: [`Stack::proxy`]. The test's own
    /// connections go past it.
    #[must_use]
    pub fn behind_proxy(mut self) -> StackBuilder {
        self.proxied = true;
        self
    }

    /// With a subscription to the events' topic, made before anything is published. The topic itself is always made.
    #[must_use]
    pub fn subscription(mut self, name: &str) -> StackBuilder {
        self.subscriptions.push(name.to_owned());
        self
    }

    /// With a setting of one program, over the stack's own: compressed timers, faults, limits.
    #[must_use]
    pub fn env(mut self, program: &str, name: &str, value: &str) -> StackBuilder {
        self.env.entry(program.to_owned()).or_default().push((name.to_owned(), value.to_owned()));
        self
    }

    /// With an argument of one program, for what has no environment variable.
    #[must_use]
    pub fn arg(mut self, program: &str, arg: &str) -> StackBuilder {
        self.args.entry(program.to_owned()).or_default().push(arg.to_owned());
        self
    }

    /// Records each member's arrivals at crash points in [`Stack::record_of`].
    #[must_use]
    pub fn record_crash_points(mut self) -> StackBuilder {
        self.record = true;
        self
    }

    /// Starts broker, provider, relay and workers, in this order, and waits until each is ready.
    ///
    /// # Errors
    /// PostgreSQL or a program is missing or does not start.
    pub async fn start(self) -> anyhow::Result<Stack> {
        let server = if self.own_server { Server::own()? } else { Server::shared()? };
        let database = match &self.fixture {
            // Its dump has the application's side as well.
            Some(fixture) => Database::restore(&server, &fixture.sql).await?,
            None => {
                let database = Database::create(&server).await?;
                sqlx::raw_sql(include_str!("application.sql")).execute(database.pool()).await?;
                database
            }
        };
        let proxy = if self.proxied { Some(PgProxy::start(server.port())?) } else { None };
        let effects = Effects::start()?;
        let dir = Folder::create(database.name())?;
        let at = Addresses {
            database_url: server.url_at(proxy.as_ref().map_or(server.port(), PgProxy::port), database.name()),
            emulator: local(free_port()?),
            sandbox: local(free_port()?),
            effects: effects.address(),
        };
        let mut stack = Stack { members: BTreeMap::new(), effects, proxy, dir, database, server };

        if let Some(fixture) = &self.fixture {
            fs::write(stack.journal_file(), &fixture.journal)?;
            stack.effects.remember(&fixture.remembered()?)?;
        }
        let settings = programs::emulator(&at, stack.dir());
        stack.add(&self, EMULATOR, EMULATOR, settings, Ready::Says)?;
        let topic = format!("projects/{PROJECT}/topics/{TOPIC}");
        http::must(at.emulator, "PUT", &format!("/v1/{topic}"), &json!({}))?;
        for name in &self.subscriptions {
            let path = format!("/v1/projects/{PROJECT}/subscriptions/{name}");
            http::must(at.emulator, "PUT", &path, &json!({"topic": topic, "enableMessageOrdering": true}))?;
        }
        let settings = programs::sandbox(&at, &stack.journal_file());
        stack.add(&self, SANDBOX, SANDBOX, settings, Ready::Says)?;
        if !self.without_relay {
            let health = local(free_port()?);
            stack.add(&self, RELAY, RELAY, programs::relay(&at, health), Ready::Answers(health))?;
        }
        for name in &self.relays {
            let health = local(free_port()?);
            stack.add(&self, name, RELAY, programs::relay(&at, health), Ready::Answers(health))?;
        }
        for (name, binary) in &self.workers {
            let health = local(free_port()?);
            stack.add(&self, name, binary, programs::worker(&at, health), Ready::Answers(health))?;
        }
        Ok(stack)
    }
}

/// A running product. Dropping it kills every process and drops the database.
pub struct Stack {
    // Dropped in this order: first the processes, last the server.
    members: BTreeMap<String, Member>,
    effects: Effects,
    proxy: Option<PgProxy>,
    database: Database,
    dir: Folder,
    server: Server,
}

impl Stack {
    /// A stack with everything but workers.
    #[must_use]
    pub fn builder() -> StackBuilder {
        StackBuilder::default()
    }

    fn add(
        &mut self,
        plan: &StackBuilder,
        name: &str,
        binary: &str,
        settings: Settings,
        ready: Ready,
    ) -> anyhow::Result<()> {
        let mut launch =
            Launch::new(paths::binary(binary)?, self.dir.0.join(format!("{name}.log"))).envs(settings);
        if plan.record {
            launch = launch.env("BACKLINE_CRASH_RECORD", self.record_of(name));
        }
        launch = launch.envs(plan.env.get(name).cloned().unwrap_or_default());
        for arg in plan.args.get(name).into_iter().flatten() {
            launch = launch.arg(arg);
        }
        let mut member = Member::new(launch, ready);
        if !plan.later.iter().any(|later| later == name) {
            member.start().with_context(|| format!("starting {name}"))?;
        }
        self.members.insert(name.to_owned(), member);
        Ok(())
    }

    /// One process of the stack, by its binary's name.
    ///
    /// # Errors
    /// The stack was built without it.
    pub fn member(&mut self, program: &str) -> anyhow::Result<&mut Member> {
        self.members.get_mut(program).with_context(|| format!("this stack has no {program}"))
    }

    /// The test's own connections to the database.
    #[must_use]
    pub fn pool(&self) -> &PgPool {
        self.database.pool()
    }

    /// Where the test's own connections go, past any proxy.
    #[must_use]
    pub fn database_url(&self) -> String {
        self.server.url(self.database.name())
    }

    /// Where the programs' connections go when the stack has a proxy.
    ///
    /// # Errors
    /// As [`Stack::proxy`].
    pub fn proxied_url(&self) -> anyhow::Result<String> {
        Ok(self.server.url_at(self.proxy()?.port(), self.database.name()))
    }

    /// The provider of the scripted worker.
    #[must_use]
    pub fn effects(&self) -> &Effects {
        &self.effects
    }

    /// The proxy before PostgreSQL.
    ///
    /// # Errors
    /// The stack was built without `behind_proxy`.
    pub fn proxy(&self) -> anyhow::Result<&PgProxy> {
        self.proxy.as_ref().context("this stack has no proxy: build it with `behind_proxy()`")
    }

    /// Every process of the stack, by name.
    pub fn members(&self) -> impl Iterator<Item = (&str, &Member)> {
        self.members.iter().map(|(name, member)| (name.as_str(), member))
    }

    /// A process that was put together elsewhere becomes part of the stack: checks look at it as well.
    pub(crate) fn admit(&mut self, name: &str, member: Member) {
        self.members.insert(name.to_owned(), member);
    }

    /// Ports by which the programs reach PostgreSQL.
    pub(crate) fn database_ports(&self) -> Vec<u16> {
        let proxy = self.proxy.as_ref().map(PgProxy::port);
        proxy.into_iter().chain([self.server.port()]).collect()
    }

    /// The PostgreSQL server, for faults.
    pub fn server(&mut self) -> &mut Server {
        &mut self.server
    }

    /// The folder of this stack's logs and proofs.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir.0
    }

    /// Where a program's crash points are recorded when the stack records them.
    #[must_use]
    pub fn record_of(&self, program: &str) -> PathBuf {
        self.dir.0.join(format!("{program}.sites"))
    }

    fn journal_file(&self) -> PathBuf {
        self.dir.0.join("provider.ndjson")
    }

    /// What the provider has received and applied, in order: the judge of external effects.
    ///
    /// # Errors
    /// A line is not JSON.
    pub fn journal(&self) -> anyhow::Result<Vec<Value>> {
        lines(&fs::read_to_string(self.journal_file()).unwrap_or_default())
    }

    /// What the broker has accepted since it was started, in order: the judge of what was really published.
    ///
    /// # Errors
    /// The emulator is down.
    pub fn published(&self) -> anyhow::Result<Vec<Value>> {
        let emulator = self.members.get(EMULATOR).context("this stack has no broker")?;
        lines(&http::must(emulator.address()?, "GET", "/log", &Value::Null)?)
    }

    /// Adds faults to the emulator or the sandbox, in its own words.
    ///
    /// # Errors
    /// The program refuses them.
    pub fn add_faults(&mut self, program: &str, faults: &Value) -> anyhow::Result<()> {
        http::must(self.member(program)?.address()?, "POST", "/faults", faults).map(drop)
    }

    /// Makes the emulator or the sandbox well behaved again.
    ///
    /// # Errors
    /// The program is down.
    pub fn clear_faults(&mut self, program: &str) -> anyhow::Result<()> {
        http::must(self.member(program)?.address()?, "DELETE", "/faults", &Value::Null).map(drop)
    }
}

/// JSON lines; the last may be half written while the program works.
fn lines(text: &str) -> anyhow::Result<Vec<Value>> {
    let whole = text.rfind('\n').map_or("", |end| text.get(..end).unwrap_or_default());
    whole
        .lines()
        .map(|line| serde_json::from_str(line).with_context(|| format!("not JSON: {line}")))
        .collect()
}

/// Logs and proofs of one stack. They stay, since a test that ends by an error cannot be told from one that passed
/// here; the runner shows this line for failed tests alone.
struct Folder(PathBuf);

impl Folder {
    /// Longer than any run of all tests: older folders are nobody's.
    const KEPT: Duration = Duration::from_secs(2 * 3600);

    fn create(name: &str) -> anyhow::Result<Folder> {
        let all = paths::binary_dir()?.join("promises");
        for entry in fs::read_dir(&all).into_iter().flatten().flatten() {
            let made = entry.metadata().and_then(|data| data.modified());
            if made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age > Folder::KEPT)) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        let dir = all.join(name);
        fs::create_dir_all(&dir)?;
        Ok(Folder(dir))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        eprintln!("logs of this stack: {}", self.0.display());
    }
}
