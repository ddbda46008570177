//! One fault at one boundary.

use crate::sweep::{Bench, Change, boundary, must_hold};
use crate::{Action, CrashPlan, Site, eventually, http, recorded};
use anyhow::Context;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Which program meets the fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The relay.
    Relay,
    /// The payments worker.
    Worker,
    /// The Twilio worker.
    Twilio,
}

impl Role {
    /// Name of the member that meets the fault, and of the one that takes over from a zombie.
    fn members(self) -> (&'static str, &'static str) {
        match self {
            Role::Relay => ("relay", "relay-2"),
            Role::Worker => ("worker", "worker-2"),
            Role::Twilio => ("twilio", "twilio-2"),
        }
    }

    /// Adds a member that is not started yet.
    fn add(self, bench: &mut Bench, name: &str, env: &[(&str, String)]) -> anyhow::Result<()> {
        match self {
            Role::Relay => bench.add_relay(name, env),
            Role::Worker => bench.add_worker(name, env),
            Role::Twilio => bench.add_twilio(name, env),
        }
    }

    /// Gives it one set of work.
    async fn work(self, bench: &mut Bench) -> anyhow::Result<()> {
        match self {
            Role::Relay | Role::Worker => bench.pay().await,
            Role::Twilio => bench.converse().await,
        }
    }
}

/// One fault to cause.
#[derive(Debug, Clone)]
pub struct Visit {
    /// Who meets it.
    pub role: Role,
    /// Where and when.
    pub site: Site,
    /// What happens.
    pub action: Action,
    /// What leads there; without it a whole set of work does.
    pub change: Option<Change>,
}

impl fmt::Display for Visit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of the {:?} at {}#{}", self.action, self.role, self.site.name, self.site.nth)?;
        self.change.map_or(Ok(()), |change| write!(f, " of {}", change.request()))
    }
}

/// The first call of each transfer takes longer than a third of a lease, so that leases are renewed while it runs.
fn slow() -> Value {
    json!([{"match": {"method": "POST", "path": "/v1/transfers"}, "per": "operation", "when": {"first": 1},
        "fault": {"kind": "slow", "delay": "680ms"}}])
}

/// A bench with both members of each role, one of each running, and a base transfer that has settled.
///
/// # Errors
/// It does not come up.
pub async fn open(env: &[(&str, String)]) -> anyhow::Result<Bench> {
    let mut bench = Bench::start(false, env).await?;
    populate(&mut bench).await?;
    Ok(bench)
}

/// Adds and starts the members of a fresh bench.
pub(crate) async fn populate(bench: &mut Bench) -> anyhow::Result<()> {
    for role in [Role::Relay, Role::Worker] {
        let (first, second) = role.members();
        for name in [first, second] {
            role.add(bench, name, &[])?;
        }
    }
    // The worker first: it makes its subscription, and what is published before is owed to nobody.
    bench.member("worker")?.start()?;
    bench.member("relay")?.start()?;
    bench.settle_base().await?;
    bench.stack().add_faults(crate::SANDBOX, &slow())
}

/// Of conversations: every second creation loses its reply, so that each set has one in doubt, and closing takes longer
/// than a third of a lease, so that leases are renewed while it runs.
fn doubtful() -> Value {
    json!([{"match": {"provider": "twilio", "kind": "conversation.create"}, "when": {"every": 2}, "fault": {"kind": "drop_reply"}},
        {"match": {"provider": "twilio", "kind": "conversation.update"}, "per": "operation", "when": {"first": 1},
            "fault": {"kind": "slow", "delay": "680ms"}}])
}

/// A bench with both Twilio workers, one of them running, and conversations that have come to rest.
///
/// # Errors
/// It does not come up.
pub async fn open_rooms(env: &[(&str, String)]) -> anyhow::Result<Bench> {
    let mut bench = Bench::start(false, env).await?;
    bench.install_rooms().await?;
    let (first, second) = Role::Twilio.members();
    for name in [first, second] {
        bench.add_twilio(name, &[])?;
    }
    bench.member(first)?.start()?;
    bench.stock().await?;
    bench.stack().add_faults(crate::SANDBOX, &doubtful())?;
    Ok(bench)
}

/// The recording run of conversations: one set of changes from the worker's start until everything has settled.
///
/// # Errors
/// Something does not settle.
pub async fn record_rooms() -> anyhow::Result<Vec<Site>> {
    let mut bench = open_rooms(&[]).await?;
    bench.member("twilio")?.kill9()?;
    let file = bench.stack().dir().join("twilio.sites");
    bench.add_twilio("twilio", &[("BACKLINE_CRASH_RECORD", file.display().to_string())])?;
    bench.member("twilio")?.start()?;
    bench.forget_slices().await?;
    bench.converse().await?;
    bench.settled().await?;
    must_hold(&bench).await?;
    eventually("each sweep to have gone round", async || {
        Ok(recorded(&file)?.iter().any(|seen| seen.name == "tx.partitions.commit.after"))
    })
    .await?;
    Ok(recorded(&file)?)
}

/// The recording run: one set of payments from the start of relay and worker until everything has settled.
///
/// # Errors
/// Something does not settle.
pub async fn record() -> anyhow::Result<BTreeMap<&'static str, Vec<Site>>> {
    let mut bench = open(&[]).await?;
    let mut files = BTreeMap::new();
    for (role, name) in [(Role::Relay, "relay"), (Role::Worker, "worker")] {
        bench.member(name)?.kill9()?;
        let file = bench.stack().dir().join(format!("{name}.sites"));
        let env = [("BACKLINE_CRASH_RECORD", file.display().to_string())];
        role.add(&mut bench, name, &env)?;
        bench.member(name)?.start()?;
        files.insert(name, file);
    }
    bench.forget_slices().await?;
    bench.pay().await?;
    bench.settled().await?;
    must_hold(&bench).await?;
    // Sweeps go by the clock: the last of them may not have gone round yet.
    let all = "each sweep to have gone round";
    eventually(all, async || {
        let seen = |name: &str, site: &str| -> anyhow::Result<bool> {
            Ok(recorded(files.get(name).context("recorded")?)?.iter().any(|seen| seen.name == site))
        };
        Ok(seen("worker", "tx.partitions.commit.after")? && seen("relay", "tx.relay.reoffer.commit.after")?)
    })
    .await?;
    files.into_iter().map(|(name, file)| Ok((name, recorded(&file)?))).collect()
}

/// The first and the last arrival at each site of a recording, to be killed, and the first, to be paused. Where
/// nothing is decided ([`boundary::QUIET`]) one death is enough, and a pause only while locks are held.
#[must_use]
pub fn visits(role: Role, sites: &[Site]) -> Vec<Visit> {
    let names: BTreeSet<&str> = sites.iter().map(|site| site.name.as_str()).collect();
    let mut visits = Vec::new();
    for name in names {
        let last = sites.iter().filter(|site| site.name == name).map(|site| site.nth).max().unwrap_or(1);
        let at = |nth, action| {
            let site = Site { name: name.to_owned(), nth };
            Visit { role, site, action, change: None }
        };
        let quiet = boundary::quiet(name);
        let begins = name.contains(".begin.");
        visits.push(at(1, Action::Kill));
        // Before its first statement a late arrival differs in nothing from the first.
        if last > 1 && !quiet && !begins {
            visits.push(at(last, Action::Kill));
        }
        let paused = if quiet { name.ends_with(".commit.before") } else { !name.ends_with(".begin.after") };
        if paused {
            visits.push(at(1, Action::Stop));
        }
    }
    visits
}

/// Every kind of writing request of the Twilio worker, killed and paused before it leaves and when its answer is there. A
/// worker that is paused before sends it when it wakes up, long after its lease.
#[must_use]
pub fn request_visits(sites: &[&str]) -> Vec<Visit> {
    let mut visits = Vec::new();
    for change in Change::ALL {
        for name in sites {
            for action in [Action::Kill, Action::Stop] {
                let site = Site { name: (*name).to_owned(), nth: 1 };
                visits.push(Visit { role: Role::Twilio, site, action, change: Some(change) });
            }
        }
    }
    visits
}

impl Visit {
    /// Causes the fault during a set of work, heals, waits for rest, and asks the invariants.
    ///
    /// # Errors
    /// The fault never fires, something does not come to rest, or an invariant is broken.
    pub async fn run(&self, bench: &mut Bench) -> anyhow::Result<()> {
        let (target, other) = self.role.members();
        if self.role == Role::Twilio {
            self.have_stock(bench).await?;
        }
        if bench.member(target)?.process().is_ok() {
            // Not an orderly stop: what it held at the end of the run before is found by lease, like any other loss.
            bench.member(target)?.kill9()?;
        }
        bench.forget_slices().await?;
        let lost = lost_claims(bench).await?;
        let asked = self.asked(bench)?;
        let dir = bench.stack().dir().join(format!("{:?}", self.action));
        std::fs::create_dir_all(&dir)?;
        let plan = CrashPlan::new(self.site.clone(), self.action, &dir);
        bench.member(target)?.launch_with(&plan)?;
        match self.change {
            Some(change) => drop(bench.change(change).await?),
            None => self.role.work(bench).await?,
        }
        self.until_fired(bench, &plan).await?;
        bench.forget_slices().await?;
        match self.action {
            Action::Kill => {
                let gone = "the process to be gone";
                eventually(gone, async || Ok(bench.member(target)?.ended()?.is_some())).await?;
                bench.member(target)?.start()?;
                bench.settled().await?;
            }
            _ => {
                // With a port that is free now: a member that waits for its turn does not keep its own.
                self.role.add(bench, other, &[])?;
                bench.member(other)?.start()?;
                bench.settled().await.context("while the zombie was stopped")?;
                let lost = lost_claims(bench).await? - lost;
                let refused = refused(bench).await?;
                bench.member(target)?.resume()?;
                self.until_awake(bench, refused, lost).await?;
                bench.settled().await?;
                bench.member(other)?.kill9()?;
            }
        }
        anyhow::ensure!(self.change.is_none() || self.asked(bench)? > asked, "no such request was made");
        must_hold(bench).await
    }

    /// Requests of the visited kind that the provider has seen.
    fn asked(&self, bench: &Bench) -> anyhow::Result<usize> {
        let kind = self.change.map_or("", Change::request);
        Ok(bench.parts().journal()?.iter().filter(|line| line["kind"] == kind).count())
    }

    /// Changes need conversations that are at rest, so a worker that is well.
    async fn have_stock(&self, bench: &mut Bench) -> anyhow::Result<()> {
        let (target, _) = self.role.members();
        if bench.member(target)?.process().is_err() {
            bench.member(target)?.start()?;
        }
        bench.stock().await
    }

    /// A site that counts by the clock is reached sooner or later; one that counts by work gets more work, and one that
    /// is reached by whoever reads the metrics gets readers.
    async fn until_fired(&self, bench: &mut Bench, plan: &CrashPlan) -> anyhow::Result<()> {
        let health = bench.member(self.role.members().0)?.address()?;
        let mut extra = 0;
        eventually(&format!("{self} to happen"), async || {
            if plan.fired() {
                return Ok(true);
            }
            if self.site.name.contains(boundary::SCRAPED) {
                // The fault may hit in the middle of the answer.
                let _ = http::call(health, "GET", "/metrics", &Value::Null);
            }
            // One change leads to one request: where it did not, another would prove nothing.
            if self.change.is_none() && bench.at_rest().await? && extra < 20 {
                extra += 1;
                self.role.work(bench).await?;
            }
            Ok(false)
        })
        .await
    }

    /// Waits until a resumed zombie works again and every claim that it had lost has been refused.
    async fn until_awake(&self, bench: &mut Bench, refused_before: i64, lost: i64) -> anyhow::Result<()> {
        let (target, _) = self.role.members();
        let member = bench.member(target)?;
        let ready = member.address()?;
        eventually("the zombie to be awake", async || {
            Ok(http::call(ready, "GET", "/readyz", &Value::Null).is_ok_and(|(status, _)| status == 200))
        })
        .await?;
        eventually(&format!("{lost} stale writes to be refused"), async || {
            Ok(refused(bench).await? - refused_before >= lost)
        })
        .await
    }
}

/// Claims that were taken from a holder that had not ended.
async fn lost_claims(bench: &Bench) -> anyhow::Result<i64> {
    let sql = "select count(*) from backline.attempt_evidence where code = 'lease_expired'";
    Ok(sqlx::query_scalar(sql).fetch_one(bench.pool()).await?)
}

/// Writes of stale holders that were refused and kept as evidence.
async fn refused(bench: &Bench) -> anyhow::Result<i64> {
    let sql = "select count(*) from backline.attempt_evidence where fenced";
    Ok(sqlx::query_scalar(sql).fetch_one(bench.pool()).await?)
}
