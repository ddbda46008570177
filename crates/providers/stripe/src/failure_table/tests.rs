use backline_failure::{Class, Failure};
use backline_provider_http::Answer;
use http::{HeaderMap, HeaderValue};

use super::{Asked, refusal, unreadable};
use crate::reply::Reply;

const REPLAYED: &[(&str, &str)] = &[("idempotent-replayed", "true")];
const RETRY: &[(&str, &str)] = &[("stripe-should-retry", "true")];
const NO_RETRY: &[(&str, &str)] = &[("stripe-should-retry", "false")];
const OBJECT: &[(&str, &str)] = &[("stripe-rate-limited-reason", "resource-specific")];

fn reply(status: u16, headers: &[(&'static str, &'static str)], body: &str) -> Reply {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.insert(*name, HeaderValue::from_static(value));
    }
    let body = bytes::Bytes::from(body.to_owned());
    Reply { body: body.clone(), ..Reply::from_head(&Answer { status, headers: map, body: Ok(body) }) }
}

fn error(kind: &str, code: &str) -> String {
    match code {
        "" => format!(r#"{{"error":{{"type":"{kind}","message":"because"}}}}"#),
        code => format!(r#"{{"error":{{"type":"{kind}","code":"{code}","message":"because"}}}}"#),
    }
}

fn summary(failure: &Failure) -> (Class, &str, bool) {
    (failure.class, &failure.code, failure.key_spent)
}

#[test]
fn the_table() {
    use Class::{Blocked, Rejected, Throttled, Transient, Unknown};
    const INVALID: &str = "invalid_request_error";
    type Row = (
        u16,
        &'static str,
        &'static str,
        &'static [(&'static str, &'static str)],
        (Class, &'static str, bool),
    );
    let rows: &[Row] = &[
        // Executed and stored: definite, and the key is used up.
        (400, INVALID, "balance_insufficient", &[], (Transient, "stripe.balance_insufficient", true)),
        (400, INVALID, "balance_insufficient", REPLAYED, (Transient, "stripe.balance_insufficient", true)),
        (400, INVALID, "amount_too_small", &[], (Rejected, "stripe.amount_too_small", true)),
        (400, INVALID, "", &[], (Rejected, "stripe.invalid_request_error", true)),
        (400, INVALID, "charge_already_refunded", &[], (Rejected, "stripe.charge_already_refunded", true)),
        (402, "card_error", "card_declined", &[], (Rejected, "stripe.card_declined", true)),
        (402, "card_error", "processing_error", &[], (Transient, "stripe.processing_error", true)),
        (404, INVALID, "resource_missing", &[], (Rejected, "stripe.resource_missing", true)),
        // Before the key layer: the same key may be presented again.
        (429, INVALID, "lock_timeout", &[], (Throttled, "stripe.lock_timeout", false)),
        (429, INVALID, "rate_limit", &[], (Throttled, "stripe.rate_limited", false)),
        (429, INVALID, "lock_timeout", REPLAYED, (Throttled, "stripe.lock_timeout", true)),
        (429, INVALID, "rate_limit", OBJECT, (Transient, "stripe.rate_limited", false)),
        (401, INVALID, "", &[], (Blocked, "stripe.unauthorized", false)),
        (403, INVALID, "", &[], (Blocked, "stripe.forbidden", false)),
        (400, INVALID, "payouts_not_allowed", &[], (Blocked, "stripe.payouts_not_allowed", false)),
        // The stored refusal of an account that is allowed again needs a new key.
        (400, INVALID, "payouts_not_allowed", REPLAYED, (Transient, "stripe.payouts_not_allowed", true)),
        // In flight.
        (409, INVALID, "idempotency_key_in_use", &[], (Transient, "stripe.key_in_use", false)),
        (409, "idempotency_error", "idempotency_key_in_use", &[], (Transient, "stripe.key_in_use", false)),
        (409, INVALID, "", &[], (Transient, "stripe.conflict", false)),
        (409, INVALID, "", NO_RETRY, (Unknown, "stripe.conflict", false)),
        // It may have acted.
        (400, "idempotency_error", "", &[], (Unknown, "stripe.key_reused", false)),
        (500, "api_error", "", &[], (Unknown, "stripe.server_error", false)),
        (500, "api_error", "", REPLAYED, (Unknown, "stripe.server_error_replayed", false)),
        (503, "api_error", "", RETRY, (Unknown, "stripe.server_error", false)),
        (418, INVALID, "", &[], (Unknown, "stripe.unlisted_answer", false)),
        (400, "brand_new_error", "", &[], (Unknown, "stripe.unlisted_answer", false)),
        (424, "api_error", "", &[], (Unknown, "stripe.unlisted_answer", false)),
        (302, "", "", &[], (Unknown, "stripe.unlisted_answer", false)),
        // Stripe's word about this very answer.
        (400, INVALID, "amount_too_small", RETRY, (Transient, "stripe.amount_too_small", false)),
    ];
    for (status, kind, code, headers, expected) in rows {
        let failure = refusal(&reply(*status, headers, &error(kind, code)), Asked::Write);
        assert_eq!(summary(&failure), *expected, "{status} {kind} {code} {headers:?}");
    }
}

#[test]
fn a_page_that_is_not_stripes_proves_nothing_but_a_429() {
    for status in (300..=599).filter(|status| *status != 429) {
        for body in ["<html>", "", r#"{"error":"no"}"#, r#"{"error":{"code":"card_declined"}}"#] {
            let failure = refusal(&reply(status, REPLAYED, body), Asked::Write);
            assert_eq!((failure.class, failure.key_spent), (Class::Unknown, false), "{status} {body}");
        }
    }
    assert_eq!(refusal(&reply(429, &[], "<html>"), Asked::Write).class, Class::Throttled);
}

#[test]
fn a_connected_account_that_may_not_parks_only_its_own_work() {
    let refused = reply(400, &[], &error("invalid_request_error", "payouts_not_allowed"));
    assert_eq!(refusal(&refused, Asked::WriteConnected).class, Class::Rejected);
    let unauthorized = reply(401, &[], &error("invalid_request_error", ""));
    assert_eq!(refusal(&unauthorized, Asked::WriteConnected).class, Class::Blocked);
}

#[test]
fn a_read_is_never_unknown_and_spends_no_key() {
    for status in 200..=599 {
        for body in
            [error("invalid_request_error", "resource_missing"), error("api_error", ""), "<html>".to_owned()]
        {
            let failure = refusal(&reply(status, &[], &body), Asked::Read);
            assert!(failure.class != Class::Unknown && !failure.key_spent, "{status} {body}");
        }
    }
    assert_eq!(unreadable(&reply(200, &[], ""), Asked::Read, "x", "").class, Class::Transient);
    assert_eq!(unreadable(&reply(200, &[], ""), Asked::Write, "x", "").class, Class::Unknown);
}

#[test]
fn evidence_names_the_answer_and_keeps_no_body() {
    let body = r#"{"error":{"type":"card_error","code":"card_declined","decline_code":"lost_card","message":"Declined.",
        "payment_method":{"card":{"last4":"4242"}}}}"#;
    let failure = refusal(&reply(402, &[("request-id", "req_1")], body), Asked::Write);
    let evidence = failure.evidence.unwrap_or_default();
    assert_eq!(evidence["request_id"], "req_1");
    assert_eq!(evidence["decline_code"], "lost_card");
    assert!(!evidence.to_string().contains("4242"));
    assert_eq!(failure.detail, "Declined.");
}

#[test]
fn a_code_that_is_not_a_name_does_not_become_one() {
    let odd = reply(400, &[], r#"{"error":{"type":"invalid_request_error","code":"Ha\nHa <b>"}}"#);
    assert_eq!(refusal(&odd, Asked::Write).code, "stripe.refused");
}
