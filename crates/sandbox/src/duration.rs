//! Durations as people write them: `200ms`, `2s`, `5m`, `24h`.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serializer};

/// Why a duration text was refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("duration `{0}` must be a whole number followed by ms, s, m or h")]
pub struct BadDuration(String);

/// Reads `200ms`, `2s`, `5m` or `24h`.
///
/// # Errors
/// A missing or unknown unit, a fraction, or a number that does not fit.
pub fn parse(text: &str) -> Result<Duration, BadDuration> {
    let bad = || BadDuration(text.to_owned());
    let split = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(bad)?;
    let (digits, unit) = text.split_at(split);
    let number: u64 = digits.parse().map_err(|_| bad())?;
    let millis = match unit {
        "ms" => Some(number),
        "s" => number.checked_mul(1_000),
        "m" => number.checked_mul(60_000),
        "h" => number.checked_mul(3_600_000),
        _ => None,
    };
    millis.map(Duration::from_millis).ok_or_else(bad)
}

/// Whole milliseconds, saturating: a span this long never ends in practice.
pub(crate) fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

/// For `#[serde(with = "crate::duration")]`.
pub(crate) fn serialize<S: Serializer>(span: &Duration, out: S) -> Result<S::Ok, S::Error> {
    out.collect_str(&format_args!("{}ms", span.as_millis()))
}

/// For `#[serde(with = "crate::duration")]`.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(input)?;
    parse(&text).map_err(serde::de::Error::custom)
}

/// For `#[serde(with = "crate::duration::optional")]`.
pub(crate) mod optional {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(span: &Option<Duration>, out: S) -> Result<S::Ok, S::Error> {
        match span {
            Some(span) => super::serialize(span, out),
            None => out.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Duration>, D::Error> {
        let text = Option::<String>::deserialize(input)?;
        text.map(|text| super::parse(&text).map_err(serde::de::Error::custom)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_units_and_refuses_bare_numbers() {
        assert_eq!(parse("200ms"), Ok(Duration::from_millis(200)));
        assert_eq!(parse("24h"), Ok(Duration::from_secs(86_400)));
        assert!(parse("10").is_err());
        assert!(parse("1.5s").is_err());
        assert!(parse("99999999999999999h").is_err());
    }
}
