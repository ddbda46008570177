//! Names, scopes, sizes and versions (obligations I4 to I12, I24, I25).
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use backline_envelope::{
    ContractError, DecodeError, Envelope, Event, Payload, Scope, Upcast, check_event, check_event_name,
    decode,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use time::OffsetDateTime;
use uuid::Uuid;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct InvoiceIssued {
    amount: i64,
    currency: String,
}

impl Event for InvoiceIssued {
    const TYPE: &'static str = "InvoiceIssued";
    const VERSION: i32 = 3;
    const UPCASTS: &'static [Upcast] = &[Upcast { from: 2, apply: default_currency }];
}

fn default_currency(mut payload: Value) -> Result<Value, String> {
    let fields = payload.as_object_mut().ok_or("is not an object")?;
    fields.insert("currency".to_owned(), "EUR".into());
    Ok(payload)
}

fn invoice(version: i32, payload: &str) -> Envelope {
    Envelope {
        id: Uuid::from_u128(1),
        event_type: "InvoiceIssued".into(),
        schema_version: version,
        organization: Some(Uuid::from_u128(2)),
        project: Some(Uuid::from_u128(3)),
        aggregate_type: "invoice".into(),
        aggregate_id: "7".into(),
        aggregate_version: None,
        correlation_id: Uuid::from_u128(4),
        causation_id: None,
        traceparent: None,
        tracestate: None,
        occurred_at: OffsetDateTime::UNIX_EPOCH,
        payload: Payload::from_json(payload).unwrap(),
    }
}

#[test]
fn names_are_facts_in_the_past_tense() {
    for good in ["PaymentAuthorized", "ScoreStatusChanged", "PayoutPaid", "UserDeletionRequested"] {
        assert_eq!(check_event_name(good), Ok(()), "{good}");
    }
    for bad in ["SendEmail", "paymentAuthorized", "Created", "Payment_Authorized", "ExportRequested", ""] {
        assert!(check_event_name(bad).is_err(), "{bad}");
    }
}

#[test]
fn only_three_events_have_no_organization() {
    #[derive(Serialize, Deserialize)]
    struct InvoiceVoided;
    impl Event for InvoiceVoided {
        const TYPE: &'static str = "InvoiceVoided";
        const VERSION: i32 = 1;
        const SCOPE: Scope = Scope::Platform;
    }
    assert!(matches!(check_event::<InvoiceVoided>(), Err(ContractError::Scope { .. })));
    let orphan = Envelope { organization: None, ..invoice(3, "{}") };
    assert!(matches!(orphan.check(), Err(ContractError::Scope { .. })));
    let no_project = Envelope { project: None, ..invoice(3, "{}") };
    assert!(matches!(no_project.check_for::<InvoiceIssued>(), Err(ContractError::Scope { .. })));
}

#[test]
fn retired_versions_are_lifted_and_unknown_ones_wait() {
    let now = InvoiceIssued { amount: 5, currency: "EUR".into() };
    assert_eq!(check_event::<InvoiceIssued>(), Ok(()));
    assert_eq!(decode::<InvoiceIssued>(&invoice(3, r#"{"amount":5,"currency":"EUR"}"#)), Ok(now));
    let lifted = decode::<InvoiceIssued>(&invoice(2, r#"{"amount":5}"#)).unwrap();
    assert_eq!(lifted.currency, "EUR");
    for version in [1, 4] {
        let unsupported = decode::<InvoiceIssued>(&invoice(version, r#"{"amount":5}"#));
        assert!(matches!(unsupported, Err(DecodeError::Unsupported { version: v, .. }) if v == version));
    }
}

#[test]
fn a_payload_of_the_wrong_shape_is_poison_and_is_not_quoted() {
    let error = decode::<InvoiceIssued>(&invoice(3, r#"{"amount":"secret"}"#)).unwrap_err();
    assert!(matches!(error, DecodeError::Malformed(_)));
    assert!(!error.to_string().contains("secret"));
    assert!(!format!("{:?}", invoice(3, r#"{"amount":"secret"}"#)).contains("secret"));
}

#[test]
fn what_the_broker_would_refuse_is_refused_before() {
    let long = Envelope { aggregate_id: "x".repeat(1025), ..invoice(3, "{}") };
    assert!(matches!(long.check(), Err(ContractError::AttributeSize { .. })));
    let giant = invoice(3, &format!("\"{}\"", "x".repeat(10_500_000)));
    assert!(matches!(giant.check(), Err(ContractError::EnvelopeSize { .. })));
}
