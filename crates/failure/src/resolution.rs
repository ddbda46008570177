/// What a provider says when it is asked whether an earlier submission took effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolution<T> {
    /// It did; here is what it made.
    Applied(T),
    /// It did not, as far as this lookup can see; accepted only after the provider's linger and lookup lag.
    NotApplied,
    /// The lookup could not look everywhere, so its silence proves nothing.
    StillUnknown,
    /// Something is there that this instruction cannot have made, or there are two: for a person.
    Conflict(String),
}

impl<T> Resolution<T> {
    /// Changes what was found and keeps every other answer.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Resolution<U> {
        match self {
            Self::Applied(found) => Resolution::Applied(change(found)),
            Self::NotApplied => Resolution::NotApplied,
            Self::StillUnknown => Resolution::StillUnknown,
            Self::Conflict(what) => Resolution::Conflict(what),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Resolution;

    #[test]
    fn a_change_of_what_was_found_changes_no_other_answer() {
        assert_eq!(Resolution::Applied(1).map(|n| n + 1), Resolution::Applied(2));
        for answer in
            [Resolution::NotApplied, Resolution::StillUnknown, Resolution::Conflict("two".to_owned())]
        {
            assert_eq!(answer.clone().map(|n: i32| n + 1), answer);
        }
    }
}
