use std::time::Duration;

/// The wait before the attempt that follows counted attempt number `attempt` (from 1): `base` doubled per attempt,
/// at most `cap`, with equal jitter, so it lies between half and the whole of that.
///
/// Equal jitter rather than full: a wait of nearly zero after ten failures would be another blow to a provider that is
/// down. `jitter` is in `[0, 1)`; anything else is brought into that range.
#[must_use]
pub fn backoff(attempt: u32, base: Duration, cap: Duration, jitter: f64) -> Duration {
    let doublings = attempt.saturating_sub(1);
    let full = 1_u32
        .checked_shl(doublings)
        .and_then(|factor| base.checked_mul(factor))
        .unwrap_or(if base.is_zero() { base } else { cap })
        .min(cap);
    let half = full / 2;
    half.saturating_add(share(full - half, jitter))
}

/// `jitter` parts of `whole`, never more than `whole`, for any float.
pub(crate) fn share(whole: Duration, jitter: f64) -> Duration {
    let jitter = if jitter.is_finite() { jitter.clamp(0.0, 1.0) } else { 0.0 };
    Duration::try_from_secs_f64(whole.as_secs_f64() * jitter).unwrap_or(whole).min(whole)
}

#[cfg(test)]
mod tests {
    use super::backoff;
    use proptest::prelude::*;
    use std::time::Duration;

    fn any_duration() -> impl Strategy<Value = Duration> {
        prop_oneof![
            (0_u64..100_000).prop_map(Duration::from_millis),
            any::<u64>().prop_map(Duration::from_secs),
            Just(Duration::MAX),
        ]
    }

    proptest! {
        #[test]
        fn it_never_overflows_and_stays_between_half_and_cap(
            attempt in any::<u32>(), base in any_duration(), cap in any_duration(), jitter in any::<f64>(),
        ) {
            let wait = backoff(attempt, base, cap, jitter);
            prop_assert!(wait <= cap);
            prop_assert!(wait >= base.min(cap) / 2);
        }

        #[test]
        fn without_jitter_it_never_shrinks(attempt in 0_u32..200, base in any_duration(), cap in any_duration()) {
            prop_assert!(backoff(attempt + 1, base, cap, 0.0) >= backoff(attempt, base, cap, 0.0));
        }
    }

    #[test]
    fn jitter_spreads_the_waits_over_the_upper_half() {
        let wait = |jitter| backoff(3, Duration::from_secs(1), Duration::from_secs(60), jitter).as_millis();
        assert_eq!([0.0, 0.25, 0.5, 1.0].map(wait), [2_000, 2_500, 3_000, 4_000]);
        assert_eq!([-1.0, 2.0, f64::NAN, f64::INFINITY].map(wait), [2_000, 4_000, 2_000, 2_000]);
    }

    #[test]
    fn it_doubles_and_then_stays() {
        let wait =
            |attempt| backoff(attempt, Duration::from_secs(1), Duration::from_secs(60), 0.0).as_millis();
        assert_eq!(
            [1, 2, 3, 6, 7, 8, 40, u32::MAX].map(wait),
            [500, 1_000, 2_000, 16_000, 30_000, 30_000, 30_000, 30_000]
        );
    }
}
