//! What must be true after every run, whatever broke (reliability invariants 1, 3 to 8, 10, 11 and 23).

use crate::sweep::Bench;
use backline_envelope::child_event_id;
use serde_json::Value;
use sha2::{Digest, Sha256};
use sqlx::types::time::OffsetDateTime;
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

/// One operation that the producer has asked for in a commit that it knows of, and how it must end.
#[derive(Debug, Clone)]
pub struct Intended {
    id: Uuid,
    kind: String,
    key: String,
    outcome: String,
}

impl Intended {
    /// Identity is recomputed here, from its published definition, and not asked of the system under test.
    #[must_use]
    pub fn new(organization: Uuid, kind: &str, key: &str, outcome: &str) -> Intended {
        let name = format!("{organization}\u{1f}{kind}\u{1f}0\u{1f}{key}");
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&Sha256::digest(name.as_bytes())[..16]);
        let id = uuid::Builder::from_custom_bytes(bytes).into_uuid();
        Intended { id, kind: kind.to_owned(), key: key.to_owned(), outcome: outcome.to_owned() }
    }

    /// The operation's id.
    #[must_use]
    pub fn operation(&self) -> Uuid {
        self.id
    }
}

#[derive(sqlx::FromRow)]
struct Outcome {
    id: Uuid,
    generation: i64,
    kind: String,
    operation_key: String,
    outcome: String,
    submission: i32,
    accepted_at: OffsetDateTime,
    payment: Option<String>,
}

/// Everything that is wrong, in words; empty when every invariant holds. Ask only after [`Bench::settled`].
///
/// # Errors
/// The database, the journal or the broker's log cannot be read.
pub async fn violations(bench: &Bench) -> anyhow::Result<Vec<String>> {
    let mut wrong = Vec::new();
    let outcomes: Vec<Outcome> = sqlx::query_as(
        "select id, generation, kind, operation_key, outcome::text, submission, accepted_at, input->>'payment_id' as payment
           from backline.operation_history",
    )
    .fetch_all(bench.pool())
    .await?;
    let journal = bench.journal()?;
    intents(bench, &outcomes, &mut wrong);
    effects(&journal, &outcomes, &mut wrong);
    children(bench, &outcomes, &mut wrong).await?;
    broker(bench, &mut wrong).await?;
    counts(bench, &mut wrong).await?;
    Ok(wrong)
}

/// As [`violations`], for a run that must be clean.
///
/// # Errors
/// An invariant does not hold; the error names all that do not.
pub async fn must_hold(bench: &Bench) -> anyhow::Result<()> {
    let wrong = violations(bench).await?;
    anyhow::ensure!(wrong.is_empty(), "invariants broken: {wrong:#?}");
    Ok(())
}

/// No intent is lost, and each ends once, as it must.
fn intents(bench: &Bench, outcomes: &[Outcome], wrong: &mut Vec<String>) {
    for intended in bench.intended() {
        let ends: Vec<_> = outcomes.iter().filter(|outcome| outcome.id == intended.id).collect();
        match ends.as_slice() {
            [only] if only.outcome == intended.outcome => {}
            other => {
                let ends: Vec<_> = other.iter().map(|end| &end.outcome).collect();
                wrong.push(format!("{} {} ended {ends:?}, not once as {}", intended.kind, intended.key, intended.outcome));
            }
        }
    }
    let mut seen = BTreeSet::new();
    for outcome in outcomes.iter().filter(|outcome| !seen.insert((outcome.id, outcome.generation))) {
        wrong.push(format!("{} {} has two outcomes for one generation", outcome.kind, outcome.operation_key));
    }
}

/// One effect, one key and one request per submission, and money only where the outcome says so.
fn effects(journal: &[Value], outcomes: &[Outcome], wrong: &mut Vec<String>) {
    let mut applied: BTreeMap<&str, usize> = BTreeMap::new();
    let mut keys: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut bodies: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for line in journal.iter().filter(|line| line["method"] == "POST") {
        let text = |field: &str| line[field].as_str();
        let Some(operation) = text("operation_id") else { continue };
        *applied.entry(operation).or_default() += usize::from(line["applied"] == true);
        if let (Some(key), Some(hash)) = (text("key"), text("params_hash")) {
            keys.entry(operation).or_default().insert(key);
            bodies.entry(key).or_default().insert(hash);
        }
    }
    for (operation, count) in &applied {
        let end = outcomes.iter().find(|outcome| outcome.id.to_string() == *operation);
        let succeeded = end.is_some_and(|end| end.outcome == "succeeded");
        if *count > 1 {
            wrong.push(format!("operation {operation} was applied {count} times"));
        }
        if (*count > 0) != succeeded {
            let end = end.map(|end| &end.outcome);
            wrong.push(format!("operation {operation} was applied {count} times and ended as {end:?}"));
        }
        let submissions = end.and_then(|end| usize::try_from(end.submission).ok()).unwrap_or(1);
        let used = keys.get(operation).map_or(0, BTreeSet::len);
        if used > submissions {
            wrong.push(format!("operation {operation} used {used} keys for {submissions} submissions"));
        }
    }
    for (key, hashes) in bodies.iter().filter(|(_, hashes)| hashes.len() > 1) {
        wrong.push(format!("key {key} carried {} different requests", hashes.len()));
    }
    let effects = outcomes.iter().filter(|end| end.outcome == "succeeded" && end.kind != "stripe.settlement");
    for end in effects.filter(|end| !applied.contains_key(end.id.to_string().as_str())) {
        wrong.push(format!("{} {} succeeded without an effect", end.kind, end.operation_key));
    }
}

/// Outcome and follow-up work came together, under ids that are a function of their parent.
async fn children(bench: &Bench, outcomes: &[Outcome], wrong: &mut Vec<String>) -> anyhow::Result<()> {
    let events: Vec<(Uuid,)> =
        sqlx::query_as("select id from backline.outbox_published union all select id from backline.outbox")
            .fetch_all(bench.pool())
            .await?;
    let events: BTreeSet<Uuid> = events.into_iter().map(|(id,)| id).collect();
    for end in outcomes {
        let step = match (end.kind.as_str(), end.outcome.as_str()) {
            ("stripe.settlement", "succeeded") => "settled",
            (_, "succeeded") => "submitted",
            (_, "rejected") => "rejected",
            _ => continue,
        };
        let Some(payment) = &end.payment else { continue };
        let about = |step| child_event_id(end.accepted_at, end.id, &format!("{}/{step}", end.generation), payment);
        // A base that was taken back in part settles as failed.
        if !events.contains(&about(step)) && !(step == "settled" && events.contains(&about("failed"))) {
            wrong.push(format!("{} {} has no event `{step}`", end.kind, end.operation_key));
        }
        let settlement = outcomes.iter().any(|other| other.operation_key == end.id.to_string());
        if step == "submitted" && !settlement {
            wrong.push(format!("{} {} was not followed to its settlement", end.kind, end.operation_key));
        }
    }
    Ok(())
}

/// Published means that the broker has it, with one payload.
async fn broker(bench: &Bench, wrong: &mut Vec<String>) -> anyhow::Result<()> {
    let claimed: Vec<(Uuid,)> = sqlx::query_as("select id from backline.outbox_published").fetch_all(bench.pool()).await?;
    let mut accepted: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in bench.published()? {
        let id = line["attributes"]["ce-id"].as_str().unwrap_or_default().to_owned();
        accepted.entry(id).or_default().insert(line["data_sha256"].to_string());
    }
    for (id,) in claimed {
        match accepted.get(&id.to_string()).map(BTreeSet::len) {
            Some(1) => {}
            Some(payloads) => wrong.push(format!("event {id} was published with {payloads} payloads")),
            None => wrong.push(format!("event {id} counts as published and the broker has never seen it")),
        }
    }
    Ok(())
}

/// Statements that must count nothing.
const NOTHING: &[(&str, &str)] = &[
    ("events recorded twice", "select count(*) - count(distinct id) from backline.outbox_published"),
    ("parked entries", "select count(*) from backline.outbox where parked_at is not null"),
    ("parked deliveries", "select count(*) from backline.parked_delivery"),
    ("operations that stopped by themselves", "select count(*) from backline.operation where state in ('dead', 'manual')"),
    ("claims without a lease", "select count(*) from backline.operation o where o.lease_id is not null
        and not exists (select from backline.lease l where l.id = o.lease_id)"),
    ("keys held by nobody", "select count(*) from backline.serial_hold h
        where not exists (select from backline.operation o where o.id = h.operation_id)"),
    ("generations asked for and never reached", "select count(*) from backline.operation_identity i
        where i.last_generation > coalesce((select max(h.generation) from backline.operation_history h where h.id = i.id), 0)"),
    ("outcomes of operations without identity", "select count(*) from backline.operation_history h
        where not exists (select from backline.operation_identity i where i.id = h.id)"),
];

async fn counts(bench: &Bench, wrong: &mut Vec<String>) -> anyhow::Result<()> {
    for (what, sql) in NOTHING {
        let count: i64 = sqlx::query_scalar(*sql).fetch_one(bench.pool()).await?;
        if count != 0 {
            wrong.push(format!("{count} {what}"));
        }
    }
    Ok(())
}
