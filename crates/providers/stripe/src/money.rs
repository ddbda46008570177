use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Currency;

/// Why an amount was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MoneyError {
    /// Not in Stripe's list; nothing is assumed about its decimals.
    #[error("currency `{0}` is not known")]
    UnknownCurrency(String),
    /// Money moves one way; the other way is another effect.
    #[error("amount must be above zero")]
    NotPositive,
    /// Not plain digits with at most one point.
    #[error("amount is not a plain decimal number")]
    NotDecimal,
    /// More digits after the point than the currency has.
    #[error("amount has more than {decimals} decimals, the most that {currency} has")]
    TooPrecise {
        /// Its currency.
        currency: Currency,
        /// Decimals the currency has.
        decimals: u32,
    },
    /// Stripe accepts only multiples in this currency.
    #[error("amount must be divisible by {step} minor units of {currency}")]
    Indivisible {
        /// Its currency.
        currency: Currency,
        /// In minor units.
        step: i64,
    },
    /// More than 64 bits of minor units.
    #[error("amount is too large")]
    TooLarge,
}

/// A positive amount in Stripe's minor units. Integers only: no float ever holds money.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct Amount {
    minor: i64,
    currency: Currency,
}

impl Amount {
    /// An amount of minor units, as Stripe counts them.
    ///
    /// # Errors
    /// Zero or less, or not a multiple that the currency allows.
    pub fn from_minor(minor: i64, currency: Currency) -> Result<Self, MoneyError> {
        if minor <= 0 {
            return Err(MoneyError::NotPositive);
        }
        if minor % currency.step() != 0 {
            return Err(MoneyError::Indivisible { currency, step: currency.step() });
        }
        Ok(Self { minor, currency })
    }

    /// Reads plain decimal text such as `12.50`. Zeros beyond the currency's decimals are accepted, because a
    /// `numeric(12,2)` column prints 80 yen as `80.00`; any other surplus digit is refused, never rounded.
    ///
    /// # Errors
    /// Text with a sign, spaces, separators or an exponent; surplus digits; the errors of [`Amount::from_minor`].
    pub fn parse(text: &str, currency: Currency) -> Result<Self, MoneyError> {
        let (whole, fraction) = match text.split_once('.') {
            Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction),
            Some(_) => return Err(MoneyError::NotDecimal),
            None => (text, ""),
        };
        if whole.is_empty() || !whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit()) {
            return Err(MoneyError::NotDecimal);
        }
        let mut minor: i64 = 0;
        let mut push = |digit: u8| {
            minor = minor
                .checked_mul(10)
                .and_then(|shifted| shifted.checked_add(i64::from(digit - b'0')))
                .ok_or(MoneyError::TooLarge)?;
            Ok(())
        };
        whole.bytes().try_for_each(&mut push)?;
        let mut digits = fraction.bytes();
        for _ in 0..currency.decimals() {
            push(digits.next().unwrap_or(b'0'))?;
        }
        if digits.any(|surplus| surplus != b'0') {
            return Err(MoneyError::TooPrecise { currency, decimals: currency.decimals() });
        }
        Self::from_minor(minor, currency)
    }

    /// In Stripe's minor units.
    #[must_use]
    pub fn minor(self) -> i64 {
        self.minor
    }

    /// Its currency.
    #[must_use]
    pub fn currency(self) -> Currency {
        self.currency
    }

    /// Checks the multiple that only payouts ask for.
    ///
    /// # Errors
    /// A fraction of a unit in a currency that is paid out whole.
    pub fn check_payout(self) -> Result<(), MoneyError> {
        let step = self.currency.payout_step();
        if self.minor % step == 0 {
            Ok(())
        } else {
            Err(MoneyError::Indivisible { currency: self.currency, step })
        }
    }

    /// Whether a reply or webhook speaks of the same money, compared in minor units.
    #[must_use]
    pub fn equals_wire(self, minor: i64, currency: &str) -> bool {
        self.minor == minor && self.currency.code().eq_ignore_ascii_case(currency)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (10_i64.pow(self.currency.decimals()), self.currency.decimals() as usize) {
            (unit, 0) => write!(f, "{}", self.minor / unit),
            (unit, width) => write!(f, "{}.{:0width$}", self.minor / unit, self.minor % unit),
        }
    }
}

/// How an amount stands in frozen inputs.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    minor: i64,
    currency: String,
}

impl From<Amount> for Stored {
    fn from(amount: Amount) -> Self {
        Self { minor: amount.minor, currency: amount.currency.code().to_owned() }
    }
}

impl TryFrom<Stored> for Amount {
    type Error = MoneyError;

    fn try_from(stored: Stored) -> Result<Self, MoneyError> {
        Self::from_minor(stored.minor, Currency::new(&stored.currency)?)
    }
}
