//! What must be true after every run, whatever broke.

use crate::check::{self, Broken, Expected, promised};
use crate::sweep::Bench;
use backline_envelope::child_event_id;
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
    accepted_at: OffsetDateTime,
    payment: Option<String>,
}

/// Everything that is wrong, in words; empty when every invariant holds. Ask only after [`Bench::settled`].
///
/// The general ones are those of [`check`]; here are those that know what this producer asked for.
///
/// # Errors
/// The database, the journal or the broker's log cannot be read.
pub async fn violations(bench: &Bench) -> anyhow::Result<Vec<String>> {
    let mut wrong = Vec::new();
    let outcomes: Vec<Outcome> = sqlx::query_as(
        "select id, generation, kind, operation_key, outcome::text, accepted_at, input->>'payment_id' as payment
           from backline.operation_history",
    )
    .fetch_all(bench.pool())
    .await?;
    intents(bench, &outcomes, &mut wrong);
    effects(bench, &outcomes, &mut wrong)?;
    children(bench, &outcomes, &mut wrong).await?;
    let stuck = "select count(*) from backline.operation where state in ('dead', 'manual')";
    let stuck: i64 = sqlx::query_scalar(stuck).fetch_one(bench.pool()).await?;
    if stuck != 0 {
        wrong.push(format!("{stuck} operations stopped by themselves"));
    }
    let mut committed: Vec<Uuid> = bench.intended().iter().map(Intended::operation).collect();
    if let Some(rooms) = &bench.rooms {
        committed.extend(&rooms.owed);
        wrong.extend(check::conversation_violations(bench.parts()).await?);
    }
    let expected = Expected { committed, ..Expected::default() };
    if let Err(error) = check::invariants(bench.parts(), &expected).await {
        wrong.push(error.downcast::<Broken>()?.to_string());
    }
    Ok(wrong)
}

/// As [`violations`], for a run that must be clean.
///
/// # Errors
/// An invariant does not hold; the error names all that do not.
pub async fn must_hold(bench: &Bench) -> anyhow::Result<()> {
    let wrong = violations(bench).await?;
    promised(wrong.is_empty(), || format!("invariants broken: {wrong:#?}"))
}

/// Each intent ends once, as it must.
fn intents(bench: &Bench, outcomes: &[Outcome], wrong: &mut Vec<String>) {
    for intended in bench.intended() {
        let ends: Vec<_> = outcomes.iter().filter(|outcome| outcome.id == intended.id).collect();
        match ends.as_slice() {
            [only] if only.outcome == intended.outcome => {}
            other => {
                let ends: Vec<_> = other.iter().map(|end| &end.outcome).collect();
                let Intended { kind, key, outcome, .. } = intended;
                wrong.push(format!("{kind} {key} ended {ends:?}, not once as {outcome}"));
            }
        }
    }
}

/// An effect where the outcome says so, and nowhere else.
fn effects(bench: &Bench, outcomes: &[Outcome], wrong: &mut Vec<String>) -> anyhow::Result<()> {
    let mut applied: BTreeMap<String, usize> = BTreeMap::new();
    for call in check::seen(bench.parts())?.into_iter().filter(|call| call.applied) {
        *applied.entry(call.operation).or_default() += 1;
    }
    for intended in bench.intended() {
        let count = applied.get(&intended.id.to_string()).copied().unwrap_or(0);
        let succeeded = outcomes.iter().any(|end| end.id == intended.id && end.outcome == "succeeded");
        if count != usize::from(succeeded) {
            wrong.push(format!(
                "{} {} was applied {count} times, succeeded: {succeeded}",
                intended.kind, intended.key
            ));
        }
    }
    Ok(())
}

/// The facts of an outcome came with it, under ids that are a function of their parent.
async fn children(bench: &Bench, outcomes: &[Outcome], wrong: &mut Vec<String>) -> anyhow::Result<()> {
    let sql = "select id from backline.outbox_published union all select id from backline.outbox";
    let events: BTreeSet<Uuid> = sqlx::query_scalar(sql).fetch_all(bench.pool()).await?.into_iter().collect();
    for end in outcomes {
        let steps: &[&str] = match (end.kind.as_str(), end.outcome.as_str()) {
            // A base that was taken back in part settles as failed.
            ("stripe.settlement", "succeeded") => &["settled", "failed"],
            (_, "succeeded") => &["submitted"],
            (_, "rejected") => &["rejected"],
            _ => continue,
        };
        let Some(payment) = &end.payment else { continue };
        let step = |step: &&str| {
            child_event_id(end.accepted_at, end.id, &format!("{}/{step}", end.generation), payment)
        };
        if !steps.iter().any(|name| events.contains(&step(name))) {
            wrong.push(format!(
                "{} {} has no event of {steps:?} under its own id",
                end.kind, end.operation_key
            ));
        }
    }
    Ok(())
}
