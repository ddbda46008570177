//! What separates the provider's participants from the wanted ones. Pure.

use backline_twilio::{Participant, ParticipantSid, Who};
use std::collections::BTreeSet;

/// Committed membership.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Who has to be there.
    pub members: BTreeSet<Who>,
    /// Who has to be gone, on record.
    pub removed: BTreeSet<Who>,
}

/// One step; each may be repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// End this membership of theirs.
    Remove(ParticipantSid, Who),
    /// Let them join.
    Add(Who),
}

/// All steps, and what is nobody's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Difference {
    /// Removals before additions: an address pair that moves from one person to another is free by then.
    pub changes: Vec<Change>,
    /// Participants that are neither wanted nor on record as removed. Somebody else let them in, and a missing row
    /// proves no removal: they stay, and are counted.
    pub strangers: usize,
}

/// Compares what is wanted with what was listed.
pub(crate) fn difference(wanted: &Wanted, listed: &[Participant]) -> Difference {
    let mut present = BTreeSet::new();
    let (mut changes, mut strangers) = (Vec::new(), 0);
    for participant in listed {
        match participant.who() {
            Some(who) if wanted.members.contains(&who) => {
                present.insert(who);
            }
            Some(who) if wanted.removed.contains(&who) => {
                changes.push(Change::Remove(participant.sid.clone(), who));
            }
            _ => strangers += 1,
        }
    }
    changes.extend(wanted.members.difference(&present).cloned().map(Change::Add));
    Difference { changes, strangers }
}

#[cfg(test)]
mod tests {
    use super::{Change, Wanted, difference};
    use backline_twilio::{Participant, Who};
    use proptest::collection::{btree_set, vec};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn who(n: u8) -> Who {
        if n.is_multiple_of(3) {
            Who::Messaging { address: format!("+1555{n}"), proxy_address: "+15550".to_owned() }
        } else {
            Who::Chat { identity: format!("user-{n}") }
        }
    }

    fn people(from: &BTreeSet<u8>) -> BTreeSet<Who> {
        from.iter().map(|n| who(*n)).collect()
    }

    /// As the wire shows it; whoever the type cannot name has neither identity nor addresses.
    fn participant(n: usize, is: Option<&Who>) -> Participant {
        let mut shown =
            serde_json::json!({"sid": format!("MB{n:032x}"), "conversation_sid": format!("CH{:032x}", 1)});
        match is {
            Some(Who::Chat { identity }) => shown["identity"] = identity.as_str().into(),
            Some(Who::Messaging { address, proxy_address }) => {
                shown["messaging_binding"] =
                    serde_json::json!({"address": address, "proxy_address": proxy_address});
            }
            None => {}
        }
        serde_json::from_value(shown).unwrap_or_else(|error| unreachable!("{error}"))
    }

    /// What a provider that does as told has afterwards.
    fn apply(listed: &[Participant], changes: &[Change]) -> Vec<Participant> {
        let mut now = listed.to_vec();
        for (n, change) in changes.iter().enumerate() {
            match change {
                Change::Remove(sid, _) => now.retain(|participant| participant.sid != *sid),
                Change::Add(who) => now.push(participant(1000 + n, Some(who))),
            }
        }
        now
    }

    proptest! {
        #[test]
        fn members_come_the_removed_go_and_strangers_stay(
            members in btree_set(0_u8..12, 0..8),
            removed in btree_set(0_u8..12, 0..8),
            listed in vec(proptest::option::of(0_u8..12), 0..12),
        ) {
            let removed: BTreeSet<u8> = removed.difference(&members).copied().collect();
            let wanted = Wanted { members: people(&members), removed: people(&removed) };
            let listed: Vec<Participant> =
                listed.iter().enumerate().map(|(n, is)| participant(n, is.map(who).as_ref())).collect();
            let found = difference(&wanted, &listed);
            let after = apply(&listed, &found.changes);
            let there: BTreeSet<Who> = after.iter().filter_map(Participant::who).collect();

            prop_assert!(wanted.members.is_subset(&there));
            prop_assert!(wanted.removed.is_disjoint(&there));
            // Nobody is added twice, and nobody is touched without a row that says so.
            let added: Vec<&Who> = found.changes.iter().filter_map(|change| match change {
                Change::Add(who) => Some(who),
                Change::Remove(..) => None,
            }).collect();
            prop_assert_eq!(added.len(), added.iter().collect::<BTreeSet<_>>().len());
            let strange = |participant: &&Participant| participant.who()
                .is_none_or(|who| !wanted.members.contains(&who) && !wanted.removed.contains(&who));
            prop_assert_eq!(found.strangers, listed.iter().filter(strange).count());
            prop_assert_eq!(after.iter().filter(strange).count(), found.strangers);
            // Removals first, and the second look finds nothing to do.
            let first_add = found.changes.iter().position(|change| matches!(change, Change::Add(_)));
            let last_removal = found.changes.iter().rposition(|change| matches!(change, Change::Remove(..)));
            prop_assert!(first_add.zip(last_removal).is_none_or(|(add, removal)| removal < add));
            prop_assert!(difference(&wanted, &after).changes.is_empty());
        }
    }
}
