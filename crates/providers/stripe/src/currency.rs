use std::fmt;

use crate::MoneyError;

/// A currency that Stripe moves, with the decimals of *Stripe's* amounts, which are not always those of ISO 4217.
///
/// Source of the tables: <https://docs.stripe.com/currencies> (presentment list, zero-decimal, three-decimal and
/// special cases). A code that is not listed is refused: guessing two decimals is a factor of a hundred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Currency {
    code: &'static str,
    decimals: u32,
    step: i64,
    payout_step: i64,
}

/// Amounts are whole units.
const ZERO_DECIMAL: &str = "bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf";

/// Amounts are thousandths, of which Stripe accepts only tens.
const THREE_DECIMAL: &str = "bhd jod kwd omr tnd";

/// Amounts are hundredths for historical reasons, but only whole units exist.
const WHOLE_IN_HUNDREDTHS: &str = "isk ugx";

/// Charged in hundredths, paid out in whole units.
const WHOLE_PAYOUTS: &str = "huf twd";

/// Amounts are hundredths.
const TWO_DECIMAL: &str = "aed afn all amd ang aoa ars aud awg azn bam bbd bdt bgn bmd bnd bob brl bsd bwp byn bzd \
    cad cdf chf cny cop crc cve czk dkk dop dzd egp etb eur fjd fkp gbp gel gip gmd gtq gyd hkd hnl hrk htg idr ils \
    inr jmd kes kgs khr kyd kzt lak lbp lkr lrd lsl mad mdl mkd mmk mnt mop mro mur mvr mwk mxn myr mzn nad ngn nio \
    nok npr nzd pab pen pgk php pkr pln qar ron rsd rub sar sbd scr sek sgd shp sle sll sos srd std svc szl thb tjs \
    top try ttd tzs uah usd uyu uzs wst xcd yer zar zmw";

/// List of codes, decimals, step of any amount, step of a payout.
const TABLE: [(&str, u32, i64, i64); 5] = [
    (TWO_DECIMAL, 2, 1, 1),
    (ZERO_DECIMAL, 0, 1, 1),
    (THREE_DECIMAL, 3, 10, 10),
    (WHOLE_IN_HUNDREDTHS, 2, 100, 100),
    (WHOLE_PAYOUTS, 2, 1, 100),
];

impl Currency {
    /// Finds a currency by its ISO 4217 code, in either case.
    ///
    /// # Errors
    /// A code that Stripe does not list.
    pub fn new(code: &str) -> Result<Self, MoneyError> {
        for (codes, decimals, step, payout_step) in TABLE {
            if let Some(code) = codes.split_ascii_whitespace().find(|known| known.eq_ignore_ascii_case(code))
            {
                return Ok(Self { code, decimals, step, payout_step });
            }
        }
        Err(MoneyError::UnknownCurrency(code.chars().take(8).collect()))
    }

    /// Every currency known here.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.into_iter().flat_map(|(codes, decimals, step, payout_step)| {
            codes.split_ascii_whitespace().map(move |code| Self { code, decimals, step, payout_step })
        })
    }

    /// Lower-case code, as Stripe writes it.
    #[must_use]
    pub fn code(self) -> &'static str {
        self.code
    }

    /// Digits after the point of one unit in Stripe's amounts.
    #[must_use]
    pub fn decimals(self) -> u32 {
        self.decimals
    }

    /// What every amount must be divisible by, in minor units.
    pub(crate) fn step(self) -> i64 {
        self.step
    }

    /// What a payout must be divisible by, in minor units.
    pub(crate) fn payout_step(self) -> i64 {
        self.payout_step
    }

    /// Stripe's typed name of it.
    pub(crate) fn wire(self) -> stripe_types::Currency {
        // The parse cannot fail: codes it does not list become its `Unknown`, which is sent as it is.
        match self.code.parse() {
            Ok(currency) => currency,
            Err(never) => match never {},
        }
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code)
    }
}

#[cfg(test)]
mod tests {
    use super::Currency;
    use std::collections::HashSet;

    #[test]
    fn no_code_is_listed_twice_and_each_reaches_the_wire_as_itself() {
        let mut seen = HashSet::new();
        for currency in Currency::all() {
            assert!(seen.insert(currency.code()), "{currency} twice");
            assert_eq!(Currency::new(&currency.code().to_uppercase()), Ok(currency));
            assert_eq!(currency.to_string(), currency.code(), "errors name the currency");
            assert_eq!(serde_json::json!(currency.wire()), currency.code());
        }
        assert!(seen.len() > 130);
    }

    #[test]
    fn unlisted_codes_are_refused() {
        for code in ["XXX", "", "eu", "euro", "btc", "EUR "] {
            assert!(Currency::new(code).is_err(), "{code:?}");
        }
    }
}
