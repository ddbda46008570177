//! Protocol buffer JSON of durations, times and field masks.

use prost_types::{Duration, Timestamp};
use serde::{Deserialize, Deserializer, Serializer};

/// `"10s"`, `"0.250s"`.
pub(super) fn duration_text(duration: &Duration) -> String {
    duration.to_string()
}

/// Reads `"10s"` and the like.
pub(super) fn parse_duration(text: &str) -> Result<Duration, String> {
    text.parse().map_err(|_| format!("{text:?} is not a duration such as \"10s\""))
}

/// Optional durations as text.
pub(super) mod duration {
    use super::{Deserialize, Deserializer, Duration, Serializer, duration_text, parse_duration};

    pub(crate) fn serialize<S: Serializer>(value: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => to.serialize_str(&duration_text(value)),
            None => to.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
        let text: Option<String> = Option::deserialize(from)?;
        text.map(|text| parse_duration(&text).map_err(serde::de::Error::custom)).transpose()
    }
}

/// Optional times as RFC 3339 text.
pub(super) mod timestamp {
    use super::{Deserialize, Deserializer, Serializer, Timestamp};

    pub(crate) fn serialize<S: Serializer>(value: &Option<Timestamp>, to: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => to.serialize_str(&value.to_string()),
            None => to.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Timestamp>, D::Error> {
        let text: Option<String> = Option::deserialize(from)?;
        text.map(|text| text.parse().map_err(|_| serde::de::Error::custom(format!("{text:?} is not a time"))))
            .transpose()
    }
}

/// Field names of a mask such as `"ackDeadlineSeconds,retryPolicy"`, as the protocol spells them.
pub(super) fn mask(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|field| !field.is_empty()).map(snake_case).collect()
}

fn snake_case(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 4);
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{duration_text, mask, parse_duration};

    #[test]
    fn masks_and_durations() -> Result<(), String> {
        assert_eq!(mask("ackDeadlineSeconds, retry_policy"), ["ack_deadline_seconds", "retry_policy"]);
        assert_eq!(duration_text(&parse_duration("10s")?), "10s");
        assert_eq!(parse_duration("0.2s")?.nanos, 200_000_000);
        assert!(parse_duration("ten").is_err());
        Ok(())
    }
}
