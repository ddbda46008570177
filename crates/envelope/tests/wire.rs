//! The wire is frozen: brokers keep entries for days, and a re-offer must carry the same bytes.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use backline_envelope::{Attributes, Envelope, Payload, child_event_id};
use proptest::prelude::*;
use std::collections::BTreeMap;
use time::OffsetDateTime;
use time::macros::datetime;
use uuid::{Uuid, uuid};

fn full() -> Envelope {
    Envelope {
        id: uuid!("0190163d-8694-739b-aea5-966c26f8ad91"),
        event_type: "PaymentAuthorized".into(),
        schema_version: 2,
        organization: Some(uuid!("018f0000-0000-7000-8000-000000000001")),
        project: Some(uuid!("018f0000-0000-7000-8000-000000000002")),
        aggregate_type: "payment".into(),
        aggregate_id: "pay-81".into(),
        aggregate_version: Some(7),
        correlation_id: uuid!("018f0000-0000-7000-8000-000000000003"),
        causation_id: Some(uuid!("018f0000-0000-7000-8000-000000000004")),
        traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into()),
        tracestate: Some("vendor=1".into()),
        occurred_at: datetime!(2026-03-04 05:06:07.123456 +02:00),
        payload: Payload::from_json(r#"{"amount": 12.10, "big": 9007199254740993}"#).unwrap(),
    }
}

fn sorted(attributes: Attributes) -> BTreeMap<String, String> {
    attributes.into_iter().collect()
}

#[test]
fn every_field_has_its_attribute() {
    insta::assert_json_snapshot!(sorted(full().to_attributes()));
}

#[test]
fn absent_fields_have_no_attribute() {
    let bare = Envelope {
        event_type: "UserDeletionRequested".into(),
        organization: None,
        project: None,
        aggregate_version: None,
        causation_id: None,
        traceparent: None,
        tracestate: None,
        ..full()
    };
    insta::assert_json_snapshot!(sorted(bare.to_attributes()));
}

#[test]
fn the_payload_keeps_its_bytes() {
    let back =
        Envelope::from_attributes(&full().to_attributes(), full().payload.as_str().as_bytes()).unwrap();
    assert_eq!(back.payload.as_str(), r#"{"amount": 12.10, "big": 9007199254740993}"#);
}

#[test]
fn a_child_id_never_changes() {
    let id = child_event_id(datetime!(2026-03-04 05:06:07.123456 UTC), full().id, "notify", "user-1");
    insta::assert_snapshot!(id, @"019cb73d-3293-7265-9c15-f64c1ff662aa");
    assert_eq!(id.get_version_num(), 7);
    assert_ne!(id, child_event_id(datetime!(2026-03-04 05:06:07.123456 UTC), full().id, "notifyu", "ser-1"));
}

#[test]
fn a_trace_state_that_does_not_fit_is_left_out() {
    let mut envelope = full();
    envelope.tracestate = Some("v".repeat(1025));
    assert_eq!(envelope.check(), Ok(()));
    assert!(!envelope.to_attributes().contains_key("ce-tracestate"));
}

prop_compose! {
    fn any_envelope()(
        ids in prop::array::uniform4(any::<u128>()),
        name in "[A-Z][a-z]{1,9}[A-Z][a-z]{1,9}ed",
        version in 1..i32::MAX,
        optional in prop::array::uniform6(any::<bool>()),
        aggregate in ("[a-z_]{1,20}", "\\PC{1,60}"),
        aggregate_version in any::<i64>(),
        micros in 0_i64..4_000_000_000_000_000,
        text in "\\PC{0,200}",
    ) -> Envelope {
        Envelope {
            id: Uuid::from_u128(ids[0]),
            event_type: name,
            schema_version: version,
            organization: optional[0].then(|| Uuid::from_u128(ids[1])),
            project: optional[1].then(|| Uuid::from_u128(ids[2])),
            aggregate_type: aggregate.0,
            aggregate_id: aggregate.1,
            aggregate_version: optional[2].then_some(aggregate_version),
            correlation_id: Uuid::from_u128(ids[3]),
            causation_id: optional[3].then(|| Uuid::from_u128(!ids[3])),
            traceparent: optional[4].then(|| "00-00-00-01".to_owned()),
            tracestate: optional[5].then(|| text.clone()),
            occurred_at: OffsetDateTime::from_unix_timestamp_nanos(i128::from(micros) * 1000).unwrap(),
            payload: Payload::encode(&text).unwrap(),
        }
    }
}

proptest! {
    #[test]
    fn what_is_sent_is_read_back(envelope in any_envelope()) {
        let back = Envelope::from_attributes(&envelope.to_attributes(), envelope.payload.as_str().as_bytes());
        prop_assert_eq!(back, Ok(envelope));
    }

    #[test]
    fn hostile_attributes_are_refused_not_fatal(
        attributes in prop::collection::hash_map("(ce-[a-z]{2,9}|content-type)", "\\PC{0,30}", 0..12),
        data in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        let _ = Envelope::from_attributes(&attributes, &data);
    }
}
