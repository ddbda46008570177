//! Invariants that the broker's own log shows: what was really published.

use super::Expected;
use crate::Stack;
use std::collections::{BTreeMap, HashSet};
use uuid::Uuid;

/// Accepted copies by event id, with the hashes of their bytes.
fn copies(stack: &Stack) -> anyhow::Result<BTreeMap<String, Vec<String>>> {
    let mut copies = BTreeMap::<String, Vec<String>>::new();
    for line in stack.published()? {
        let id = line["attributes"]["ce-id"].as_str().unwrap_or_default().to_owned();
        copies.entry(id).or_default().push(line["data_sha256"].as_str().unwrap_or_default().to_owned());
    }
    copies.remove("");
    Ok(copies)
}

/// Copies beyond the first of each event.
pub(super) fn surplus(stack: &Stack) -> anyhow::Result<i64> {
    let surplus: usize = copies(stack)?.values().map(|copies| copies.len() - 1).sum();
    Ok(i64::try_from(surplus).unwrap_or(i64::MAX))
}

pub(super) async fn check(stack: &Stack, expected: &Expected) -> anyhow::Result<Vec<String>> {
    let mut violations = Vec::new();
    let copies = copies(stack)?;
    let sql = "select distinct id from backline.outbox_published";
    let recorded: Vec<Uuid> = sqlx::query_scalar(sql).fetch_all(stack.pool()).await?;
    for id in recorded {
        if !copies.contains_key(&id.to_string()) && !expected.published_before.contains(&id) {
            violations.push(format!("4 recorded as published, unknown to the broker: {id}"));
        }
    }
    for (id, hashes) in copies {
        if hashes.iter().collect::<HashSet<_>>().len() > 1 {
            violations.push(format!("5 copies of one event differ: {id}"));
        }
    }
    let twice = stack
        .count("select count(*) - count(distinct id) from backline.outbox_published where offers = 0")
        .await?;
    if twice != 0 {
        violations.push(format!("4 {twice} events have two records of their first publication"));
    }
    Ok(violations)
}
