//! States of an operation and the one function that says which may follow which.

/// Open and final states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// Serial key, capability or pause in the way.
    Waiting,
    /// May be claimed when due.
    Ready,
    /// One claim holds it.
    Running,
    /// The provider may have acted.
    Unknown,
    /// Only a person may decide.
    Manual,
    /// Not tried again by itself; nothing may have left.
    Dead,
    /// Final: done.
    Succeeded,
    /// Final: refused for good.
    Rejected,
    /// Final: no longer wanted.
    Obsolete,
    /// Final: cancelled before anything was applied.
    Cancelled,
    /// Final: not started in time.
    Expired,
    /// Final: given up by an operator.
    Discarded,
    /// Final: replaced by a corrected operation.
    Superseded,
}

/// What happens to an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Happening {
    /// A runner claims it.
    Claim,
    /// What it waited for is there.
    Unblock,
    /// Perform or resolve brought the effect's output, or the generation converged.
    Applied,
    /// Refused for good; nothing applied.
    Refused,
    /// A rule found it unwanted; nothing submitted.
    Unwanted,
    /// To be tried again; nothing of this submission may have left.
    Retry,
    /// The request may have left and nobody knows.
    Doubt,
    /// Attempts spent or inputs unreadable; nothing may have left.
    Exhausted,
    /// A lookup proved non-application: the next submission may be presented.
    ProvedAbsent,
    /// Lookups cannot decide, or contradict the instruction; or no request can bring a desired state about.
    AskPerson,
    /// A cancel is honored: nothing was applied.
    Cancel,
    /// Its time passed before anything was submitted.
    Expire,
    /// An operator gives it up.
    Discard,
    /// An operator replaced it.
    Supersede,
}

/// The state after `happening`, or `None` when that may not happen in `state`.
#[must_use]
pub fn next(state: State, happening: Happening) -> Option<State> {
    use Happening as H;
    use State as S;
    Some(match (state, happening) {
        (S::Waiting, H::Unblock) => S::Ready,
        (S::Ready, H::Claim) | (S::Unknown, H::Claim) => S::Running,
        (S::Running | S::Manual, H::Applied) => S::Succeeded,
        (S::Running | S::Manual, H::Refused) => S::Rejected,
        (S::Running, H::Unwanted) => S::Obsolete,
        (S::Running | S::Dead, H::Retry) => S::Ready,
        (S::Running, H::Doubt) => S::Unknown,
        (S::Running, H::Exhausted) => S::Dead,
        (S::Running | S::Manual, H::ProvedAbsent) => S::Ready,
        (S::Running, H::AskPerson) => S::Manual,
        (S::Waiting | S::Ready | S::Running | S::Manual, H::Cancel) => S::Cancelled,
        (S::Waiting | S::Ready | S::Running, H::Expire) => S::Expired,
        (S::Dead, H::Discard) => S::Discarded,
        (S::Ready | S::Waiting | S::Dead, H::Supersede) => S::Superseded,
        _ => return None,
    })
}

impl State {
    /// Whether the state holds its serial key: nobody else with the key may run. A desired state that waits for a person
    /// (`manual`) gives it up (`leave.sql`): nothing of it is in doubt, and the others must not wait for the person.
    #[must_use]
    pub fn holds_key(self) -> bool {
        matches!(self, Self::Running | Self::Unknown | Self::Manual)
    }

    /// Whether it ends the generation.
    #[must_use]
    pub fn is_final(self) -> bool {
        matches!(
            self,
            Self::Succeeded
                | Self::Rejected
                | Self::Obsolete
                | Self::Cancelled
                | Self::Expired
                | Self::Discarded
                | Self::Superseded
        )
    }

    /// Name in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Ready => "ready",
            Self::Running => "running",
            Self::Unknown => "unknown",
            Self::Manual => "manual",
            Self::Dead => "dead",
            Self::Succeeded => "succeeded",
            Self::Rejected => "rejected",
            Self::Obsolete => "obsolete",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
            Self::Discarded => "discarded",
            Self::Superseded => "superseded",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Happening as H, State as S, next};
    use proptest::prelude::*;

    const STATES: [S; 13] = [
        S::Waiting,
        S::Ready,
        S::Running,
        S::Unknown,
        S::Manual,
        S::Dead,
        S::Succeeded,
        S::Rejected,
        S::Obsolete,
        S::Cancelled,
        S::Expired,
        S::Discarded,
        S::Superseded,
    ];
    const HAPPENINGS: [H; 14] = [
        H::Claim,
        H::Unblock,
        H::Applied,
        H::Refused,
        H::Unwanted,
        H::Retry,
        H::Doubt,
        H::Exhausted,
        H::ProvedAbsent,
        H::AskPerson,
        H::Cancel,
        H::Expire,
        H::Discard,
        H::Supersede,
    ];

    #[test]
    fn the_whole_table_is_what_the_contract_says() {
        let legal: Vec<String> = STATES
            .iter()
            .flat_map(|state| {
                HAPPENINGS.iter().filter_map(move |happening| {
                    next(*state, *happening)
                        .map(|to| format!("{} -{happening:?}-> {}", state.as_str(), to.as_str()))
                })
            })
            .collect();
        assert_eq!(
            legal,
            [
                "waiting -Unblock-> ready",
                "waiting -Cancel-> cancelled",
                "waiting -Expire-> expired",
                "waiting -Supersede-> superseded",
                "ready -Claim-> running",
                "ready -Cancel-> cancelled",
                "ready -Expire-> expired",
                "ready -Supersede-> superseded",
                "running -Applied-> succeeded",
                "running -Refused-> rejected",
                "running -Unwanted-> obsolete",
                "running -Retry-> ready",
                "running -Doubt-> unknown",
                "running -Exhausted-> dead",
                "running -ProvedAbsent-> ready",
                "running -AskPerson-> manual",
                "running -Cancel-> cancelled",
                "running -Expire-> expired",
                "unknown -Claim-> running",
                "manual -Applied-> succeeded",
                "manual -Refused-> rejected",
                "manual -ProvedAbsent-> ready",
                "manual -Cancel-> cancelled",
                "dead -Retry-> ready",
                "dead -Discard-> discarded",
                "dead -Supersede-> superseded",
            ]
        );
    }

    proptest! {
        /// Whatever happens in whatever order: a final state stays, and doubt never ends in dead, discarded or
        /// superseded without passing through a claim or a person.
        #[test]
        fn finals_are_final_and_unknown_never_dies(steps in proptest::collection::vec(0_usize..14, 1..40)) {
            let mut state = S::Ready;
            for step in steps {
                let Some(to) = next(state, HAPPENINGS[step]) else { continue };
                prop_assert!(!state.is_final(), "{} was left", state.as_str());
                if state == S::Unknown {
                    prop_assert_eq!(to, S::Running);
                }
                if state == S::Manual {
                    prop_assert!(!matches!(to, S::Dead | S::Discarded | S::Superseded));
                }
                state = to;
            }
        }
    }

    #[test]
    fn the_final_states_are_those_that_nothing_leaves() {
        for state in STATES {
            let stays = HAPPENINGS.iter().all(|happening| next(state, *happening).is_none());
            assert_eq!(state.is_final(), stays, "{}", state.as_str());
        }
    }

    #[test]
    fn every_state_that_may_have_an_effect_in_flight_holds_its_key() {
        for state in STATES {
            let in_flight = matches!(state, S::Running | S::Unknown | S::Manual);
            assert_eq!(state.holds_key(), in_flight, "{}", state.as_str());
        }
    }
}
