//! Amounts: Stripe's decimals, exact text, nothing rounded, nothing guessed.

use backline_stripe::{Amount, Currency, MoneyError};
use proptest::prelude::*;

fn minor(text: &str, code: &str) -> Result<i64, MoneyError> {
    Amount::parse(text, Currency::new(code)?).map(Amount::minor)
}

#[test]
fn decimals_are_those_of_the_currency() {
    // Field case 71: always times a hundred charged 80 yen as 8 000.
    assert_eq!(minor("80", "JPY"), Ok(80));
    assert_eq!(minor("1.000", "KWD"), Ok(1000));
    assert_eq!(minor("10", "EUR"), Ok(1000));
    assert_eq!(minor("1", "XXX"), Err(MoneyError::UnknownCurrency("XXX".to_owned())));
    assert_eq!(minor("80.00", "JPY"), Ok(80));
    assert_eq!(minor("5", "ISK"), Ok(500));
    assert_eq!(minor("5", "UGX"), Ok(500));
    assert_eq!(minor("0.01", "USD"), Ok(1));
}

#[test]
fn what_the_currency_cannot_hold_is_refused_not_rounded() {
    assert!(matches!(minor("80.5", "JPY"), Err(MoneyError::TooPrecise { decimals: 0, .. })));
    assert!(matches!(minor("80.05", "JPY"), Err(MoneyError::TooPrecise { decimals: 0, .. })));
    assert!(matches!(minor("1.005", "USD"), Err(MoneyError::TooPrecise { decimals: 2, .. })));
    assert!(matches!(minor("5.124", "KWD"), Err(MoneyError::Indivisible { step: 10, .. })));
    assert!(matches!(minor("5.50", "ISK"), Err(MoneyError::Indivisible { step: 100, .. })));
    assert_eq!(minor("0", "USD"), Err(MoneyError::NotPositive));
    assert_eq!(minor("92233720368547758.08", "USD"), Err(MoneyError::TooLarge));
    for text in ["", ".", "1.", ".5", "-1", "+1", " 1", "1e3", "1,5", "1.2.3", "0x1", "١"] {
        assert_eq!(minor(text, "USD"), Err(MoneyError::NotDecimal), "{text:?}");
    }
}

#[test]
fn an_unknown_code_is_named_but_never_quoted_at_length() {
    let pasted = "pasted! ".repeat(20);
    assert_eq!(minor("1", &pasted), Err(MoneyError::UnknownCurrency("pasted! ".to_owned())));
}

#[test]
fn what_a_webhook_says_is_compared_in_minor_units() -> Result<(), MoneyError> {
    for (text, code, minor) in [("80", "jpy", 80), ("1.000", "kwd", 1000), ("10", "eur", 1000)] {
        let amount = Amount::parse(text, Currency::new(code)?)?;
        assert!(amount.equals_wire(minor, code) && amount.equals_wire(minor, &code.to_uppercase()));
        assert!(!amount.equals_wire(minor * 100, code) && !amount.equals_wire(minor, "usd"));
    }
    Ok(())
}

#[test]
fn payouts_of_some_currencies_are_whole() -> Result<(), MoneyError> {
    for code in ["huf", "twd"] {
        let payout = |text| Amount::parse(text, Currency::new(code)?)?.check_payout();
        for fraction in ["10.45", "10.50"] {
            assert!(matches!(payout(fraction), Err(MoneyError::Indivisible { step: 100, .. })), "{fraction}");
        }
        assert_eq!(payout("11.00"), Ok(()));
    }
    assert_eq!(Amount::parse("10.45", Currency::new("usd")?)?.check_payout(), Ok(()));
    Ok(())
}

#[test]
fn a_stored_amount_is_checked_when_it_is_read() {
    let read = |text| serde_json::from_str::<Amount>(text);
    assert!(read(r#"{"minor":1000,"currency":"eur"}"#).is_ok());
    for text in [
        r#"{"minor":1000,"currency":"xxx"}"#,
        r#"{"minor":0,"currency":"eur"}"#,
        r#"{"minor":10.5,"currency":"eur"}"#,
        r#"{"minor":1234,"currency":"kwd"}"#,
        r#"{"minor":1000,"currency":"eur","decimals":2}"#,
    ] {
        assert!(read(text).is_err(), "{text}");
    }
}

fn any_currency() -> impl Strategy<Value = Currency> {
    prop::sample::select(Currency::all().collect::<Vec<_>>())
}

proptest! {
    #[test]
    fn text_and_minor_units_say_the_same(currency in any_currency(), minor in 1_i64..=i64::MAX) {
        if let Ok(amount) = Amount::from_minor(minor, currency) {
            prop_assert_eq!(Amount::parse(&amount.to_string(), currency), Ok(amount));
            let stored = serde_json::to_string(&amount).map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert_eq!(serde_json::from_str::<Amount>(&stored).ok(), Some(amount));
        }
    }

    #[test]
    fn no_text_panics(currency in any_currency(), text in "[0-9.eE+ -]{0,40}") {
        let _ = Amount::parse(&text, currency);
    }
}
