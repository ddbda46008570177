//! What was applied per operation, kept up to date with the journal: the checkers' view of the effects.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::journal::Line;

/// Everything seen of one operation id.
#[derive(Debug, Default, Clone, Serialize)]
pub(crate) struct Entry {
    pub(crate) kind: String,
    pub(crate) currency: String,
    /// Effects created. More than one is a duplicate.
    pub(crate) applied: u64,
    /// Sum of the effects, minor units.
    pub(crate) amount: i64,
    /// Calls that named the operation.
    pub(crate) calls: u64,
    /// Of these, answered from the idempotency store.
    pub(crate) replayed: u64,
    /// Effects that are final: money available, paid or refunded, and not taken back.
    pub(crate) settled: u64,
    pub(crate) objects: Vec<String>,
    /// Distinct idempotency keys.
    pub(crate) keys: Vec<String>,
    /// Distinct parameter hashes.
    pub(crate) params_hashes: Vec<String>,
}

/// Sum per kind and currency.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Total {
    pub(crate) applied: u64,
    pub(crate) amount: i64,
}

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) operations: BTreeMap<String, Entry>,
    pub(crate) totals: BTreeMap<String, BTreeMap<String, Total>>,
    pub(crate) posts: u64,
    pub(crate) gets: u64,
    /// Effects of calls that named no operation.
    pub(crate) without_operation: u64,
}

impl Ledger {
    /// Takes a line into account.
    pub(crate) fn note(&mut self, line: &Line) {
        // Memberships are no sums; Twilio's own report has them.
        if line.provider.as_deref() == Some(crate::twilio::PROVIDER) {
            return;
        }
        match line.method.as_str() {
            "GET" => self.gets += 1,
            "POST" => self.note_post(line),
            _ => {}
        }
    }

    fn note_post(&mut self, line: &Line) {
        // A held call counts when it arrives; its second line only adds the effect.
        let held = line.replied == "held";
        let arrived = held || !line.was_held;
        self.posts += u64::from(arrived);
        if line.applied {
            let kind = self.totals.entry(line.kind.clone().unwrap_or_default()).or_default();
            let total = kind.entry(line.currency.clone().unwrap_or_default()).or_default();
            total.applied += 1;
            total.amount += line.amount.unwrap_or(0);
        }
        let Some(operation) = &line.operation_id else {
            self.without_operation += u64::from(line.applied);
            return;
        };
        let entry = self.operations.entry(operation.clone()).or_default();
        entry.calls += u64::from(arrived);
        entry.replayed += u64::from(line.replayed);
        add(&mut entry.keys, line.key.as_ref());
        add(&mut entry.params_hashes, line.params_hash.as_ref());
        if line.applied {
            entry.kind = line.kind.clone().unwrap_or_default();
            entry.currency = line.currency.clone().unwrap_or_default();
            entry.applied += 1;
            entry.amount += line.amount.unwrap_or(0);
            add(&mut entry.objects, line.object_id.as_ref());
        }
    }
}

fn add(set: &mut Vec<String>, value: Option<&String>) {
    if let Some(value) = value
        && !set.contains(value)
    {
        set.push(value.clone());
    }
}
