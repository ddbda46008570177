//! The books: what the application was acknowledged, what its tables say, and what the provider has.

use super::script::{CONVERSATIONS, Wanted, wanted};
use super::{Acknowledged, Chat, identity};
use crate::demo::journal::{self, Line};
use crate::demo::lies;
use crate::explain;
use reqwest::Client;
use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

/// The sandbox's name of the provider.
const PROVIDER: &str = "twilio";

/// `GET /twilio` of the sandbox: its state without lags.
#[derive(Debug, Deserialize)]
struct Report {
    conversations: Vec<Room>,
    deleted: Vec<Room>,
}

/// A conversation as the provider has it.
#[derive(Debug, Clone, Default, Deserialize)]
struct Room {
    /// The application's id.
    unique_name: String,
    state: String,
    /// Every state it was written to, in order.
    states: Vec<String>,
    participants: Vec<Person>,
}

#[derive(Debug, Clone, Deserialize)]
struct Person {
    identity: String,
}

/// The application's committed view of a conversation.
#[derive(Debug, Clone, sqlx::FromRow)]
struct Committed {
    id: Uuid,
    /// None when it is deleted.
    state: Option<String>,
    people: Vec<String>,
    /// The worker has recorded the outcome of its end.
    ended: bool,
    /// The worker has recorded the outcome of its creation.
    created: bool,
}

/// The balance.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Balance {
    /// Conversations whose opening was acknowledged.
    pub(crate) accepted: usize,
    /// Of these, at the provider exactly as committed: the same people, closed, or gone.
    pub(crate) converged: usize,
    /// All others.
    pub(crate) differing: usize,
    /// Written to another state after an end.
    pub(crate) reopened: usize,
    /// Still at the provider, and deleted or nobody's here.
    pub(crate) left_behind: usize,
    /// Calls that were under way with another one about the same conversation, callers that had given up aside.
    pub(crate) overlapped: usize,
    /// What the three books say of each that differs.
    pub(crate) differences: Vec<String>,
}

impl Balance {
    /// Every conversation is as committed, and nothing else is there.
    pub(crate) fn balances(&self) -> bool {
        *self == Balance { accepted: CONVERSATIONS, converged: CONVERSATIONS, ..Balance::default() }
    }

    pub(crate) fn line(&self) -> String {
        let Self { accepted, converged, differing, reopened, left_behind, overlapped, .. } = self;
        format!(
            "conversations accepted={accepted} converged={converged} differing={differing} reopened={reopened} left_behind={left_behind} overlapped={overlapped}"
        )
    }
}

/// Counted faults and their mending.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Faults {
    /// Effects whose reply never arrived.
    pub(crate) lost_replies: usize,
    /// Effects after their caller had given up.
    pub(crate) late: usize,
    pub(crate) throttled: usize,
    /// Writes that reads did not show for a while.
    pub(crate) hidden: u64,
    pub(crate) stale_refused: i64,
    pub(crate) abandoned_reclaimed: i64,
}

/// Compares the three books.
pub(crate) async fn balance(
    chat: &Chat,
    acknowledged: &Acknowledged,
    pool: &PgPool,
    client: &Client,
    sandbox: &str,
) -> anyhow::Result<Balance> {
    let report: Report = journal::page(client, sandbox, "/twilio").await?.json().await?;
    let ids: Vec<Uuid> = chat.conversations.iter().map(|conversation| conversation.id).collect();
    let committed: Vec<Committed> =
        sqlx::query_as(include_str!("committed.sql")).bind(&ids).fetch_all(pool).await?;
    let committed: BTreeMap<Uuid, Committed> = committed.into_iter().map(|row| (row.id, row)).collect();
    let mut balance = Balance { accepted: acknowledged.opened, ..Balance::default() };
    for (n, id) in ids.iter().enumerate() {
        let told: BTreeSet<String> = acknowledged.people(n);
        let rooms: Vec<&Room> = report.conversations.iter().filter(|room| room.is(*id)).collect();
        let agreed = committed.get(id).is_some_and(|row| agree(wanted(n), row, &told, &rooms));
        balance.converged += usize::from(agreed);
        if !agreed {
            let row = committed.get(id);
            balance.differences.push(format!("{id} wanted {:?}: {told:?}, {row:?}, {rooms:?}", wanted(n)));
        }
        balance.left_behind += usize::from(wanted(n) == Wanted::Deleted && !rooms.is_empty());
    }
    balance.differing = CONVERSATIONS - balance.converged;
    balance.left_behind +=
        report.conversations.iter().filter(|room| !ids.iter().any(|id| room.is(*id))).count();
    let rooms = report.conversations.iter().chain(&report.deleted);
    balance.reopened = rooms.filter(|room| reopened(&room.states)).count();
    balance.overlapped = overlapped(&journal::of(PROVIDER, client, sandbox).await?);
    Ok(balance)
}

impl Acknowledged {
    /// Who is in a conversation by what was acknowledged.
    fn people(&self, conversation: usize) -> BTreeSet<String> {
        let there = self.members.iter().filter(|((of, _), present)| *of == conversation && **present);
        there.map(|((_, person), _)| identity(*person)).collect()
    }
}

impl Room {
    fn is(&self, id: Uuid) -> bool {
        self.unique_name == id.to_string()
    }
}

/// Whether the three say the same of one conversation.
fn agree(wanted: Wanted, committed: &Committed, told: &BTreeSet<String>, rooms: &[&Room]) -> bool {
    let people = |room: &Room| room.participants.iter().map(|person| person.identity.clone()).collect();
    match (wanted, committed.state.as_deref(), rooms) {
        (Wanted::Active, Some("active"), [room]) => {
            let there: BTreeSet<String> = people(room);
            room.state == "active"
                && there.len() == room.participants.len()
                && there == *told
                && there == committed.people.iter().cloned().collect()
        }
        // Twilio takes no changes to a closed conversation, so whoever was in it stays.
        (Wanted::Ended, Some("closed" | "archived"), [room]) => committed.ended && room.state == "closed",
        // It ended before anybody came to create it, and then nobody does.
        (Wanted::Ended, Some("closed" | "archived"), []) => !committed.created,
        (Wanted::Deleted, None, []) => committed.ended,
        _ => false,
    }
}

/// A state after the last one, or use after it was set aside.
fn reopened(states: &[String]) -> bool {
    states.windows(2).any(|pair| pair[0] == "closed" || pair[1] == "active")
}

/// Pairs of calls about one conversation of which neither's caller had given up.
fn overlapped(lines: &[Line]) -> usize {
    let ended = || lines.iter().filter(|line| line.replied != "held");
    let given_up: BTreeSet<u64> = ended().filter(|line| line.abandoned).map(|line| line.seq).collect();
    let meant = ended().filter(|line| !given_up.contains(&line.seq));
    meant.flat_map(|line| &line.overlaps).filter(|other| !given_up.contains(other)).count()
}

/// Counts what was done to the workers and their calls; a fault that never happened proves nothing.
pub(crate) async fn faults(pool: &PgPool, client: &Client, sandbox: &str) -> anyhow::Result<Faults> {
    let lines = journal::of(PROVIDER, client, sandbox).await?;
    let count = |is: fn(&Line) -> bool| lines.iter().filter(|line| is(line)).count();
    Ok(Faults {
        lost_replies: count(Line::lost_reply),
        late: count(|line| line.applied && line.abandoned),
        throttled: count(Line::throttled),
        hidden: lies::hidden(client, sandbox).await?,
        stale_refused: sqlx::query_scalar(include_str!("stale_refused.sql")).fetch_one(pool).await?,
        abandoned_reclaimed: sqlx::query_scalar(include_str!("reclaimed.sql")).fetch_one(pool).await?,
    })
}

/// The page of a conversation with a story: one whose worker was stopped in the middle, and with little else.
pub(crate) async fn one_story(pool: &PgPool) -> anyhow::Result<Option<String>> {
    let sql = include_str!("one_story.sql");
    let Some(subject): Option<String> = sqlx::query_scalar(sql).fetch_optional(pool).await? else {
        return Ok(None);
    };
    let page = explain::tell(pool, &subject).await?.page();
    Ok(Some(format!("$ backline explain {subject}\n{page}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(state: &str, people: &[&str]) -> Room {
        let participants = people.iter().map(|name| Person { identity: (*name).to_owned() }).collect();
        Room { state: state.to_owned(), participants, ..Room::default() }
    }

    fn row(state: Option<&str>, people: &[&str], ended: bool) -> Committed {
        let people = people.iter().map(|name| (*name).to_owned()).collect();
        Committed { id: Uuid::nil(), state: state.map(str::to_owned), people, ended, created: true }
    }

    #[test]
    fn one_difference_anywhere_is_seen() {
        let told = BTreeSet::from(["a".to_owned(), "b".to_owned()]);
        let active = row(Some("active"), &["a", "b"], false);
        let same = room("active", &["b", "a"]);
        assert!(agree(Wanted::Active, &active, &told, &[&same]));
        for wrong in [
            room("active", &["a"]),
            room("active", &["a", "b", "c"]),
            room("active", &["a", "b", "b"]),
            room("closed", &["a", "b"]),
        ] {
            assert!(!agree(Wanted::Active, &active, &told, &[&wrong]), "{wrong:?}");
        }
        assert!(!agree(Wanted::Active, &active, &told, &[]));
        assert!(!agree(Wanted::Active, &active, &BTreeSet::new(), &[&same]), "a commit that was lost");
        assert!(!agree(Wanted::Active, &row(Some("active"), &["a"], false), &told, &[&same]));
        let (closed, open) = (room("closed", &["a"]), room("active", &["a"]));
        assert!(agree(Wanted::Ended, &row(Some("archived"), &[], true), &told, &[&closed]));
        assert!(!agree(Wanted::Ended, &row(Some("archived"), &[], false), &told, &[&closed]));
        assert!(!agree(Wanted::Ended, &row(Some("closed"), &[], true), &told, &[&open]));
        let never = Committed { created: false, ..row(Some("closed"), &[], false) };
        assert!(agree(Wanted::Ended, &never, &told, &[]) && !agree(Wanted::Ended, &never, &told, &[&open]));
        assert!(!agree(Wanted::Ended, &row(Some("closed"), &[], true), &told, &[]));
        assert!(agree(Wanted::Deleted, &row(None, &[], true), &told, &[]));
        assert!(!agree(Wanted::Deleted, &row(None, &[], true), &told, &[&closed]));
        assert!(!agree(Wanted::Deleted, &row(None, &[], false), &told, &[]));
    }

    #[test]
    fn nothing_follows_an_end() {
        let states = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert!(!reopened(&states(&["active"])) && !reopened(&states(&["active", "closed"])));
        assert!(reopened(&states(&["active", "closed", "active"])));
        assert!(reopened(&states(&["active", "closed", "inactive"])));
        assert!(reopened(&states(&["active", "inactive", "active"])));
    }

    #[test]
    fn calls_overlap_unless_one_was_given_up() {
        let line = |seq, abandoned, overlaps: &[u64]| Line {
            seq,
            abandoned,
            overlaps: overlaps.to_vec(),
            ..Line::default()
        };
        assert_eq!(overlapped(&[line(1, false, &[]), line(2, false, &[1])]), 1);
        assert_eq!(overlapped(&[line(1, true, &[]), line(2, false, &[1])]), 0);
        assert_eq!(overlapped(&[line(1, false, &[]), line(2, true, &[1])]), 0);
        let held = Line { replied: "held".into(), ..line(2, false, &[1]) };
        assert_eq!(overlapped(&[held, line(1, false, &[]), line(2, true, &[1])]), 0);
    }

    #[test]
    fn one_deviation_anywhere_breaks_the_balance() {
        let good = || Balance { accepted: CONVERSATIONS, converged: CONVERSATIONS, ..Balance::default() };
        assert!(good().balances());
        assert_eq!(
            good().line(),
            "conversations accepted=16 converged=16 differing=0 reopened=0 left_behind=0 overlapped=0"
        );
        let broken = [
            Balance { accepted: CONVERSATIONS - 1, ..good() },
            Balance { converged: CONVERSATIONS - 1, ..good() },
            Balance { differing: 1, ..good() },
            Balance { reopened: 1, ..good() },
            Balance { left_behind: 1, ..good() },
            Balance { overlapped: 1, ..good() },
        ];
        assert!(broken.iter().all(|balance| !balance.balances()));
    }
}
