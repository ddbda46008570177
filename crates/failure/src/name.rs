/// A stored or configured name that this build does not know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} `{name}`")]
pub struct UnknownName {
    /// What was being read: `failure class`, `mode`.
    pub what: &'static str,
    /// The text that was found, as it was found.
    pub name: String,
}
