use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use serde_json::Value;

use crate::Class;

/// The longest detail kept, in bytes: enough for a provider's sentence, too little for a dumped body.
pub const DETAIL_LIMIT: usize = 500;

/// Why an effect did not succeed: class, stable code and the provider's evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// What kind of failure it is; the only thing `decide` acts on besides `key_spent` and `retry_after`.
    pub class: Class,
    /// Stable name that dashboards and runbooks match on, for example `stripe.balance_insufficient`.
    pub code: Cow<'static, str>,
    /// One sentence for an operator; at most [`DETAIL_LIMIT`] bytes, free of control characters.
    pub detail: String,
    /// How long the provider asked to be left alone; capped by the policy, not here.
    pub retry_after: Option<Duration>,
    /// The provider's idempotency layer stored this answer under the submission's key: a definite non-application
    /// whose key would only replay the same refusal and must not be used again.
    pub key_spent: bool,
    /// The provider only repeated an answer that it had stored for the key: presenting the submission again brings the
    /// same answer again, so what is still unknown can only be looked up.
    pub stored_answer: bool,
    /// Facts of the provider's reply that are safe to store: status, request id, type, code. Never card data.
    pub evidence: Option<Value>,
}

impl Failure {
    /// A failure of `class` with no detail yet.
    pub fn new(class: Class, code: impl Into<Cow<'static, str>>) -> Self {
        Self {
            class,
            code: code.into(),
            detail: String::new(),
            retry_after: None,
            key_spent: false,
            stored_answer: false,
            evidence: None,
        }
    }

    /// Passes by itself.
    pub fn transient(code: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Class::Transient, code)
    }

    /// The whole fleet should slow down.
    pub fn throttled(code: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Class::Throttled, code)
    }

    /// Permanent.
    pub fn rejected(code: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Class::Rejected, code)
    }

    /// No longer wanted.
    pub fn obsolete(code: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Class::Obsolete, code)
    }

    /// The provider may or may not have acted.
    pub fn unknown(code: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Class::Unknown, code)
    }

    /// The account or its credentials are refused.
    pub fn blocked(code: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Class::Blocked, code)
    }

    /// Inputs that no attempt of this build can read.
    pub fn poison(code: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Class::Poison, code)
    }

    /// Adds a sentence for the operator; cleaned and cut here so that no caller has to remember it.
    #[must_use]
    pub fn with_detail(mut self, detail: impl AsRef<str>) -> Self {
        self.detail = clean(detail.as_ref());
        self
    }

    /// Adds the wait that the provider asked for.
    #[must_use]
    pub fn with_retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// Marks the submission's key as used up by a stored refusal.
    #[must_use]
    pub fn with_key_spent(mut self) -> Self {
        self.key_spent = true;
        self
    }

    /// Adds reply facts that are safe to store; their texts are cleaned and cut like a detail.
    #[must_use]
    pub fn with_evidence(mut self, evidence: Value) -> Self {
        self.evidence = Some(clean_value(evidence));
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.code, self.class)?;
        if self.detail.is_empty() { Ok(()) } else { write!(f, ": {}", self.detail) }
    }
}

impl std::error::Error for Failure {}

/// `jsonb` refuses NUL as well.
fn clean_value(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(clean(&text)),
        Value::Array(values) => Value::Array(values.into_iter().map(clean_value).collect()),
        Value::Object(fields) => Value::Object(
            fields.into_iter().map(|(name, value)| (clean(&name), clean_value(value))).collect(),
        ),
        other => other,
    }
}

/// PostgreSQL refuses NUL in text and terminals obey escape codes, so neither survives; the cut never falls inside a
/// character.
fn clean(text: &str) -> String {
    let mut kept = String::with_capacity(text.len().min(DETAIL_LIMIT));
    for character in text.chars() {
        let character = if character.is_control() { ' ' } else { character };
        if kept.len() + character.len_utf8() > DETAIL_LIMIT {
            break;
        }
        kept.push(character);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::{DETAIL_LIMIT, Failure};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_provider_text_becomes_a_storable_detail(text in any::<String>(), repeat in 1_usize..200) {
            let detail = Failure::transient("x").with_detail(text.repeat(repeat)).detail;
            prop_assert!(detail.len() <= DETAIL_LIMIT);
            prop_assert!(!detail.chars().any(char::is_control));
        }
    }

    #[test]
    fn the_cut_falls_between_characters_at_every_offset() {
        for offset in 0..16 {
            let text = format!("{}{}", "x".repeat(offset), "é👍🏽🇳🇱".repeat(400));
            let detail = Failure::unknown("x").with_detail(&text).detail;
            assert!(text.starts_with(&detail) && detail.len() > DETAIL_LIMIT - 4);
        }
    }

    #[test]
    fn evidence_is_storable_at_any_depth() {
        let evidence = serde_json::json!({"a\u{0}": ["b\u{0}", {"c": "d\n"}], "n": 1});
        let cleaned = Failure::unknown("x").with_evidence(evidence).evidence;
        assert_eq!(cleaned, Some(serde_json::json!({"a ": ["b ", {"c": "d "}], "n": 1})));
    }

    #[test]
    fn each_constructor_says_its_own_class() {
        use crate::Class;
        let made = [
            Failure::transient("x"),
            Failure::throttled("x"),
            Failure::rejected("x"),
            Failure::obsolete("x"),
            Failure::unknown("x"),
            Failure::blocked("x"),
            Failure::poison("x"),
        ];
        assert_eq!(made.map(|failure| failure.class), Class::ALL);
    }

    #[test]
    fn display_names_code_class_and_detail() {
        assert_eq!(Failure::rejected("a.b").to_string(), "a.b (rejected)");
        assert_eq!(Failure::rejected("a.b").with_detail("no\0pe").to_string(), "a.b (rejected): no pe");
    }
}
