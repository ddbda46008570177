use std::time::{Duration, SystemTime};

/// Reads a `Retry-After` header: whole seconds, or an HTTP date in any form of RFC 9110 section 5.6.7.
///
/// A date that has passed is a wait of zero. More seconds than a `u64` holds is the longest wait there is; the policy's
/// cap brings it down. Anything else is `None`: a provider that talks nonsense has not asked for anything.
#[must_use]
pub fn parse_retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim_matches([' ', '\t']);
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(value.parse().map_or(Duration::MAX, Duration::from_secs));
    }
    let at = httpdate::parse_http_date(value).ok()?;
    Some(at.duration_since(now).unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use super::parse_retry_after;
    use proptest::prelude::*;
    use std::time::{Duration, SystemTime};

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    proptest! {
        #[test]
        fn no_header_value_panics(value in any::<String>(), now in 0_u64..4_000_000_000) {
            let _ = parse_retry_after(&value, at(now));
        }

        #[test]
        fn seconds_read_back(seconds in any::<u64>()) {
            prop_assert_eq!(parse_retry_after(&seconds.to_string(), at(0)), Some(Duration::from_secs(seconds)));
        }

        #[test]
        fn a_date_is_the_wait_until_then(now in 0_u64..4_000_000_000, wait in 0_u64..1_000_000) {
            let date = httpdate::fmt_http_date(at(now + wait));
            prop_assert_eq!(parse_retry_after(&date, at(now)), Some(Duration::from_secs(wait)));
        }
    }

    #[test]
    fn past_is_zero_huge_is_longest_and_nonsense_is_nothing() {
        let now = at(1_800_000_000);
        assert_eq!(parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", now), Some(Duration::ZERO));
        assert_eq!(parse_retry_after("99999999999999999999999999", now), Some(Duration::MAX));
        for nonsense in ["", " ", "-1", "+1", "1.5", "1s", "soon", "Sun, 99 Nov 1994 08:49:37 GMT", "١٢"] {
            assert_eq!(parse_retry_after(nonsense, now), None, "{nonsense:?}");
        }
    }
}
