//! ISO 8601 durations of the timers that move a conversation on by itself.

/// Milliseconds of `P1DT2H3M4S` in any of its shorter forms.
pub(crate) fn millis(text: &str) -> Option<i64> {
    let (mut total, mut number, mut in_time, mut seen) = (0_i64, None::<i64>, false, false);
    for character in text.strip_prefix('P')?.chars() {
        match (character, character.to_digit(10)) {
            (_, Some(digit)) => {
                number = Some(number.unwrap_or(0).checked_mul(10)?.checked_add(i64::from(digit))?);
            }
            ('T', _) if !in_time && number.is_none() => in_time = true,
            (unit, _) => {
                let seconds = match (unit, in_time) {
                    ('D', false) => 86_400,
                    ('H', true) => 3_600,
                    ('M', true) => 60,
                    ('S', true) => 1,
                    _ => return None,
                };
                let span = number.take()?.checked_mul(seconds)?.checked_mul(1_000)?;
                total = total.checked_add(span)?;
                seen = true;
            }
        }
    }
    (seen && number.is_none()).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::millis;

    #[test]
    fn the_forms_that_twilio_shows() {
        assert_eq!(millis("PT1M"), Some(60_000));
        assert_eq!(millis("P1DT10M1S"), Some(87_001_000));
        for bad in ["", "P", "PT", "1M", "P1M", "PT1", "PTM", "PT1D", "P99999999999999999999D"] {
            assert_eq!(millis(bad), None, "{bad}");
        }
    }
}
