//! Subscription filters over attributes:
//! <https://cloud.google.com/pubsub/docs/subscription-message-filter>.

mod parse;

use std::collections::BTreeMap;

/// A parsed filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Filter {
    /// `attributes:key`
    Has(String),
    /// `attributes.key = "value"`
    Equals(String, String),
    /// `attributes.key != "value"`: also true when the attribute is missing.
    Differs(String, String),
    /// `hasPrefix(attributes.key, "value")`
    HasPrefix(String, String),
    Not(Box<Filter>),
    And(Vec<Filter>),
    Or(Vec<Filter>),
}

/// Why a filter is refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum FilterError {
    #[error("filter: unexpected end")]
    End,
    #[error("filter: unexpected {0:?}")]
    Unexpected(String),
    #[error("filter: unterminated string")]
    Unterminated,
    #[error("filter: AND and OR need parentheses when combined")]
    Mixed,
    #[error("filter: longer than 256 bytes")]
    TooLong,
}

impl Filter {
    /// Parses a filter; an empty text is no filter.
    pub(crate) fn parse(text: &str) -> Result<Option<Self>, FilterError> {
        // Limit of the page named above.
        if text.len() > 256 {
            return Err(FilterError::TooLong);
        }
        if text.trim().is_empty() { Ok(None) } else { parse::parse(text).map(Some) }
    }

    /// Whether a message with these attributes is delivered.
    pub(crate) fn matches(&self, attributes: &BTreeMap<String, String>) -> bool {
        match self {
            Self::Has(key) => attributes.contains_key(key),
            Self::Equals(key, value) => attributes.get(key) == Some(value),
            Self::Differs(key, value) => attributes.get(key) != Some(value),
            Self::HasPrefix(key, prefix) => attributes.get(key).is_some_and(|v| v.starts_with(prefix)),
            Self::Not(inner) => !inner.matches(attributes),
            Self::And(all) => all.iter().all(|f| f.matches(attributes)),
            Self::Or(any) => any.iter().any(|f| f.matches(attributes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Filter, FilterError};
    use std::collections::BTreeMap;

    fn check(text: &str, attributes: &[(&str, &str)]) -> Result<bool, FilterError> {
        let attributes: BTreeMap<String, String> =
            attributes.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Ok(Filter::parse(text)?.is_none_or(|f| f.matches(&attributes)))
    }

    #[test]
    fn language() -> Result<(), FilterError> {
        let sms = [("kind", "sms"), ("lane", "iowa-2")];
        for (text, wanted) in [
            ("", true),
            ("attributes:kind", true),
            ("attributes:other", false),
            ("NOT attributes:other", true),
            ("-attributes:other", true),
            (r#"attributes.kind = "sms""#, true),
            (r#"attributes.kind="email""#, false),
            (r#"attributes.kind != "email""#, true),
            (r#"attributes.other != "x""#, true),
            (r#"hasPrefix(attributes.lane, "iowa-")"#, true),
            (r#"hasPrefix(attributes.lane, "ohio")"#, false),
            (r#"attributes.kind = "sms" AND attributes:lane"#, true),
            (r#"attributes.kind = "email" OR attributes:lane"#, true),
            (r#"(attributes.kind = "email" OR attributes:lane) AND NOT attributes:off"#, true),
            (r#"NOT (attributes.kind = "sms" AND attributes:lane)"#, false),
            (r#"attributes."kind" = "sms""#, true),
            (r#"attributes:"a b""#, false),
            (r#"attributes.kind = "s\"ms""#, false),
        ] {
            assert_eq!(check(text, &sms)?, wanted, "{text}");
        }
        Ok(())
    }

    #[test]
    fn refusals() {
        for (text, wanted) in [
            ("attributes", FilterError::End),
            ("data = \"x\"", FilterError::Unexpected("data".into())),
            ("attributes.kind = \"x", FilterError::Unterminated),
            ("attributes:a AND attributes:b OR attributes:c", FilterError::Mixed),
            ("(attributes:a", FilterError::End),
            ("attributes:a)", FilterError::Unexpected(")".into())),
            ("attributes.kind < \"x\"", FilterError::Unexpected("<".into())),
        ] {
            assert_eq!(Filter::parse(text), Err(wanted), "{text}");
        }
        assert_eq!(Filter::parse(&"a".repeat(257)), Err(FilterError::TooLong));
    }
}
