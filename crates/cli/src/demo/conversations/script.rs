//! What the application will do, fixed by the seed before anything runs.

use std::collections::BTreeSet;

/// Conversations that are opened. The last six end on the way.
pub(super) const CONVERSATIONS: usize = 16;
/// Producers. Each lets its own people come and go in every conversation, so what it was told last about somebody is
/// what has to be true.
pub(super) const PRODUCERS: usize = 4;
/// People of the project.
pub(super) const PEOPLE: usize = 12;
/// Changes per producer.
pub(super) const CHANGES: usize = 60;
/// Who is in a conversation from its opening on.
pub(super) const FIRST: [usize; 3] = [0, 1, 2];

/// Ends, each at a percentage of the first producer's changes. Closing comes before archiving for one of them.
const ENDS: [(usize, Change); 7] = [
    (30, Change::Close(10)),
    (40, Change::Archive(11)),
    (45, Change::Delete(14)),
    (50, Change::Close(12)),
    (60, Change::Close(13)),
    (65, Change::DeleteProject(15)),
    (70, Change::Archive(13)),
];

/// How a conversation is wanted in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Active,
    Ended,
    Deleted,
}

/// One transaction of the application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    /// One of these comes, or goes, or both in one transaction.
    Members {
        conversation: usize,
        joins: Option<usize>,
        leaves: Option<usize>,
    },
    Close(usize),
    Archive(usize),
    Delete(usize),
    /// The conversation goes with its project, by a cascade that no function of the application sees.
    DeleteProject(usize),
    /// An intent of long ago that arrives again, about a conversation that has ended since.
    OldIntent(usize),
}

/// What the script makes of a conversation.
pub(super) fn wanted(conversation: usize) -> Wanted {
    let mut wanted = Wanted::Active;
    for (_, end) in ENDS {
        match end {
            Change::Close(n) | Change::Archive(n) if n == conversation => wanted = Wanted::Ended,
            Change::Delete(n) | Change::DeleteProject(n) if n == conversation => wanted = Wanted::Deleted,
            _ => {}
        }
    }
    wanted
}

/// Number of the project that a conversation belongs to: the second goes with the last conversation.
pub(super) fn project(conversation: usize) -> usize {
    usize::from(ENDS.iter().any(|(_, end)| *end == Change::DeleteProject(conversation)))
}

/// The changes of one producer, in order.
pub(super) fn changes(seed: u64, producer: usize) -> Vec<Change> {
    let mut present: BTreeSet<(usize, usize)> = BTreeSet::new();
    for conversation in 0..CONVERSATIONS {
        present.extend(FIRST.iter().filter(|n| *n % PRODUCERS == producer).map(|n| (conversation, *n)));
    }
    let own: Vec<usize> = (0..PEOPLE).filter(|n| n % PRODUCERS == producer).collect();
    let mut number = u64::try_from(producer).unwrap_or(0) << 32;
    let mut draw = |below: usize| {
        number += 1;
        usize::try_from(super::super::driver::mix(seed ^ number) % 1_000_003).unwrap_or(0) % below.max(1)
    };
    let mut changes = Vec::new();
    for n in 0..CHANGES {
        if producer == 0 {
            changes.extend(
                ENDS.iter().filter(|(percent, _)| percent * CHANGES / 100 == n).map(|(_, end)| end.clone()),
            );
        }
        let conversation = draw(CONVERSATIONS);
        let person = own[draw(own.len())];
        // One of three changes brings somebody and takes somebody else out.
        let other = (n % 3 == 0).then(|| own[draw(own.len())]).filter(|other| *other != person);
        let (mut joins, mut leaves) = (None, None);
        for person in std::iter::once(person).chain(other) {
            let there = present.contains(&(conversation, person));
            match (there, joins, leaves) {
                (false, None, _) => joins = Some(person),
                (true, _, None) => leaves = Some(person),
                _ => continue,
            }
            if there {
                present.remove(&(conversation, person))
            } else {
                present.insert((conversation, person))
            };
        }
        changes.push(Change::Members { conversation, joins, leaves });
    }
    if producer == 0 {
        changes.extend((0..CONVERSATIONS).filter(|n| wanted(*n) != Wanted::Active).map(Change::OldIntent));
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::{CHANGES, CONVERSATIONS, Change, PEOPLE, PRODUCERS, Wanted, changes, wanted};
    use std::collections::BTreeSet;

    #[test]
    fn people_belong_to_one_producer_and_scripts_to_their_seed() {
        let mut seen = BTreeSet::new();
        for producer in 0..PRODUCERS {
            let script = changes(1, producer);
            assert_eq!(script, changes(1, producer));
            assert_ne!(script, changes(2, producer));
            let members = script.iter().filter_map(|change| match change {
                Change::Members { joins, leaves, .. } => Some((*joins, *leaves)),
                _ => None,
            });
            let members: Vec<_> = members.collect();
            assert_eq!(members.len(), CHANGES);
            assert!(members.iter().any(|(joins, leaves)| joins.is_some() && leaves.is_some()));
            for person in members.iter().flat_map(|(joins, leaves)| joins.iter().chain(leaves)) {
                assert_eq!(person % PRODUCERS, producer);
                seen.insert(*person);
            }
        }
        assert_eq!(seen.len(), PEOPLE);
    }

    #[test]
    fn conversations_end_in_every_way() {
        let of = |wanted_so: Wanted| (0..CONVERSATIONS).filter(|n| wanted(*n) == wanted_so).count();
        assert_eq!((of(Wanted::Active), of(Wanted::Ended), of(Wanted::Deleted)), (10, 4, 2));
    }
}
