//! Invariants that the providers' journals show: effects, keys and money.

use super::Expected;
use crate::Stack;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

/// One writing call as a provider saw it.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Operation id.
    pub operation: String,
    /// Presentation: submissions of one operation and generation have different keys, calls of one have the same.
    pub presentation: String,
    /// Idempotency key.
    pub key: String,
    /// Digest of what was asked for.
    pub asked: String,
    /// This very call had its effect.
    pub applied: bool,
    /// Whether the provider deduplicates by key.
    pub keyed: bool,
    /// Minor units, where money moved.
    pub amount: i64,
}

/// Every writing call of both providers, in order.
///
/// # Errors
/// A journal line is not JSON.
pub fn seen(stack: &Stack) -> anyhow::Result<Vec<Seen>> {
    let mut seen = Vec::new();
    for line in stack.journal()? {
        let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
        // Twilio has neither keys nor money: conversations have a judge of their own.
        if line["provider"] == "twilio"
            || line["method"] != "POST"
            || line["operation_id"].is_null()
            || line["replied"] == "held"
        {
            continue;
        }
        let applied = line["applied"] == Value::Bool(true);
        seen.push(Seen {
            operation: text("operation_id"),
            presentation: format!("{} {}", text("operation_id"), text("key")),
            key: text("key"),
            asked: text("params_hash"),
            applied,
            keyed: true,
            amount: if applied { line["amount"].as_i64().unwrap_or(0) } else { 0 },
        });
    }
    for call in stack.effects().calls() {
        seen.push(Seen {
            operation: call.operation.to_string(),
            presentation: format!("{} {} {}", call.operation, call.generation, call.submission),
            key: call.key,
            asked: call.value.to_string(),
            applied: call.applied,
            keyed: call.kind != "effect.plain" && call.kind != "effect.desired",
            amount: 0,
        });
    }
    Ok(seen)
}

pub(super) async fn check(stack: &Stack, expected: &Expected) -> anyhow::Result<Vec<String>> {
    let mut violations = Vec::new();
    let calls = seen(stack)?;
    let reconciled = reconciled(stack).await?;
    let (mut applied, mut surplus) = (BTreeMap::<&str, usize>::new(), 0);
    for call in calls.iter().filter(|call| call.applied && !reconciled.contains(&call.operation)) {
        let times = applied.entry(&call.operation).or_default();
        *times += 1;
        if *times > 1 && call.keyed {
            violations.push(format!("6 {} had {times} effects", call.operation));
        } else if *times > 1 {
            surplus += 1;
        }
    }
    if surplus > expected.possible_duplicates {
        violations.push(format!("6 {surplus} surplus effects, {} declared", expected.possible_duplicates));
    }
    let (mut keys, mut asked) = (BTreeMap::new(), BTreeMap::new());
    for call in &calls {
        if *keys.entry(&call.presentation).or_insert(&call.key) != &call.key {
            violations.push(format!("7 {} was presented under two keys", call.presentation));
        }
        if *asked.entry(&call.key).or_insert(&call.asked) != &call.asked
            && !reconciled.contains(&call.operation)
        {
            violations.push(format!("7 key {} carried two requests", call.key));
        }
    }
    // Every presentation under a new key followed a definite non-application: submissions are counted.
    let mut by_operation = BTreeMap::<&str, BTreeSet<&str>>::new();
    for call in calls.iter().filter(|call| !reconciled.contains(&call.operation)) {
        by_operation.entry(&call.operation).or_default().insert(&call.key);
    }
    for (operation, keys) in by_operation {
        let submissions = submissions(stack, operation).await?;
        if i64::try_from(keys.len()).unwrap_or(i64::MAX) > submissions {
            violations.push(format!("7 {operation}: {} keys for {submissions} submissions", keys.len()));
        }
    }
    let moved: i64 = calls.iter().map(|call| call.amount).sum();
    let sql = "select coalesce(sum((input #>> '{instruction,amount,minor}')::bigint), 0)::bigint from backline.operation_history
        where kind like 'stripe.%' and kind <> 'stripe.settlement' and outcome = 'succeeded'";
    let booked = stack.count(sql).await?;
    let undecided = stack.count("select count(*) from backline.operation where kind like 'stripe.%'").await?;
    if moved != booked && undecided == 0 {
        violations.push(format!("23 the provider moved {moved}, outcomes say {booked}"));
    }
    Ok(violations)
}

/// Operations whose every attempt converges: repeating them is no second effect.
async fn reconciled(stack: &Stack) -> sqlx::Result<BTreeSet<String>> {
    let sql = "select i.id::text from backline.operation_identity i join backline.kind k using (kind) where k.mode = 'reconcile'";
    Ok(sqlx::query_scalar(sql).fetch_all(stack.pool()).await?.into_iter().collect())
}

async fn submissions(stack: &Stack, operation: &str) -> anyhow::Result<i64> {
    let sql = "select coalesce((select submission from backline.operation where id = $1), (select max(submission) from backline.operation_history where id = $1), 0)::bigint";
    Ok(sqlx::query_scalar(sql).bind(operation.parse::<Uuid>()?).fetch_one(stack.pool()).await?)
}
