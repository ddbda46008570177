//! What is printed at the end.

use super::conversations;
use super::ledger::{Balance, Faults};
use crate::explain;
use serde::Serialize;
use sqlx::PgPool;
use std::collections::BTreeMap;

/// Everything that was counted.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) seed: u64,
    pub(super) payments: usize,
    pub(super) seconds: f64,
    pub(super) kills: BTreeMap<&'static str, u64>,
    /// Processes that ended without being killed and were started again.
    pub(super) own_ends: u64,
    /// Commits whose reply was lost and which found themselves done.
    pub(super) commits_found_again: u64,
    pub(super) faults: Faults,
    /// All payments settled and all queues were empty before the patience ended.
    pub(super) came_to_rest: bool,
    pub(super) balance: Balance,
    pub(super) conversations: Conversations,
}

/// The other story.
#[derive(Debug, Serialize)]
pub(super) struct Conversations {
    /// Transactions that were acknowledged after the openings.
    pub(super) changes: usize,
    /// Closings, archivings and deletions among them.
    pub(super) ends: usize,
    pub(super) faults: conversations::Faults,
    pub(super) balance: conversations::Balance,
}

impl Report {
    /// Faults that never happened: a run without them has shown nothing.
    pub(super) fn never_happened(&self) -> Vec<String> {
        let kills = self.kills.iter().map(|(label, kills)| (format!("kills of {label}"), *kills == 0));
        let faults = &self.faults;
        let chat = &self.conversations.faults;
        let counts = [
            ("lost replies", faults.lost_replies == 0),
            ("429s", faults.throttled == 0),
            ("stale writes refused", faults.stale_refused == 0),
            ("unknowns resolved", faults.unknowns_resolved == 0),
            ("changes of conversations", self.conversations.changes == 0),
            ("Twilio's lost replies", chat.lost_replies == 0),
            ("Twilio's late effects", chat.late == 0),
            ("Twilio's 429s", chat.throttled == 0),
            ("Twilio's hidden writes", chat.hidden == 0),
            ("abandoned attempts of Twilio workers", chat.abandoned_reclaimed == 0),
            ("stale writes of Twilio workers refused", chat.stale_refused == 0),
        ];
        let counts = counts.into_iter().map(|(name, none)| (name.to_owned(), none));
        kills.chain(counts).filter(|(_, none)| *none).map(|(name, _)| name).collect()
    }

    pub(super) fn good(&self) -> bool {
        self.came_to_rest
            && self.never_happened().is_empty()
            && self.balance.balances(self.payments)
            && self.conversations.balance.balances()
    }

    /// Everything before the last line.
    pub(super) fn text(&self) -> String {
        let kills: Vec<String> = self.kills.iter().map(|(label, kills)| format!("{label} {kills}")).collect();
        let (faults, balance) = (&self.faults, &self.balance);
        let mut lines = vec![
            format!("seed {}, {:.1}s", self.seed, self.seconds),
            format!("killed with SIGKILL: {}", kills.join(", ")),
            format!("ended by themselves and restarted: {}", self.own_ends),
            format!("commits whose reply was lost, repeated and found done: {}", self.commits_found_again),
            format!("provider replies lost after applying: {}", faults.lost_replies),
            format!("429s: {}", faults.throttled),
            format!("500s replayed by the provider: {}", faults.replayed_500),
            format!("stale writes refused: {}", faults.stale_refused),
            format!("unknowns resolved: {}", faults.unknowns_resolved),
            format!(
                "money: accepted {} and applied {} minor units",
                balance.accepted_minor, balance.applied_minor
            ),
        ];
        if balance.applied_without_operation > 0 {
            lines.push(format!("effects without an operation: {}", balance.applied_without_operation));
        }
        lines.extend(self.conversations.text());
        let differences = &self.conversations.balance.differences;
        lines.extend(differences.iter().map(|difference| format!("DIFFERS: {difference}")));
        if !self.came_to_rest {
            lines.push("NOT AT REST: the patience ended first".to_owned());
        }
        lines.extend(
            self.never_happened().iter().map(|name| format!("NEVER HAPPENED, so nothing is shown: {name}")),
        );
        lines.join("\n")
    }

    /// The two balances, that of the payments last.
    pub(super) fn last_lines(&self) -> String {
        format!("{}\n{}", self.conversations.balance.line(), self.balance.line())
    }
}

impl Conversations {
    fn text(&self) -> [String; 7] {
        let faults = &self.faults;
        [
            format!("conversations: {} transactions acknowledged, {} of them ends", self.changes, self.ends),
            format!("Twilio replies lost after applying: {}", faults.lost_replies),
            format!("Twilio effects after the caller had given up: {}", faults.late),
            format!("Twilio 429s: {}", faults.throttled),
            format!("Twilio writes that reads did not show for a while: {}", faults.hidden),
            format!("attempts abandoned by Twilio workers and taken over: {}", faults.abandoned_reclaimed),
            format!("stale writes of Twilio workers refused: {}", faults.stale_refused),
        ]
    }
}

/// The page of a payment with a story: one that was unknown for a while.
pub(super) async fn one_story(pool: &PgPool) -> anyhow::Result<Option<String>> {
    let sql = "select h.causation_id::text from backline.operation_history h join backline.attempt_evidence e on e.operation_id = h.id
               where h.kind = 'stripe.transfer' and h.causation_id is not null
               group by h.causation_id order by bool_or(e.class = 'unknown') desc, bool_or(e.fenced) desc, count(*) desc limit 1";
    let Some(event): Option<String> = sqlx::query_scalar(sql).fetch_optional(pool).await? else {
        return Ok(None);
    };
    let page = explain::tell(pool, &event).await?.page();
    Ok(Some(format!("$ backline explain {event}\n{page}")))
}
