use std::time::Duration;

use backline_failure::{Class, Failure};
use backline_provider_http::Answer;
use http::{HeaderMap, HeaderValue};

use super::{Asked, Fact, Refusal, refusal, unreadable};
use crate::reply::Reply;

fn reply(status: u16, headers: &[(&'static str, &'static str)], body: &str) -> Reply {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.insert(*name, HeaderValue::from_static(value));
    }
    let body = bytes::Bytes::from(body.to_owned());
    Reply { body: body.clone(), ..Reply::from_head(&Answer { status, headers: map, body: Ok(body) }) }
}

fn error(status: u16, code: u32) -> String {
    format!(
        r#"{{"code":{code},"message":"user-17 at +15558675310","more_info":"https://x/{code}","status":{status}}}"#
    )
}

fn failed(refusal: Refusal) -> Option<Failure> {
    match refusal {
        Refusal::Failed(failure) => Some(failure),
        Refusal::Fact(_) => None,
    }
}

#[test]
fn what_is_already_so_is_a_fact_and_no_failure() {
    let rows = [
        (409, 50353, Fact::NameTaken),
        (409, 50433, Fact::Present),
        (409, 50437, Fact::Present),
        (400, 50377, Fact::Closed),
        (404, 20404, Fact::Absent),
        (404, 50350, Fact::Absent),
        (404, 50432, Fact::Absent),
        (404, 50430, Fact::Absent),
    ];
    for (status, code, expected) in rows {
        for asked in [Asked::Read, Asked::Write] {
            let said = refusal(&reply(status, &[], &error(status, code)), asked);
            assert!(matches!(said, Refusal::Fact(fact) if fact == expected), "{code}: {said:?}");
        }
    }
}

#[test]
fn the_table() {
    use Class::{Blocked, Rejected, Throttled, Transient, Unknown};
    let rows = [
        (409, 50416, Rejected, "twilio.address_bound_elsewhere"),
        (400, 50425, Rejected, "twilio.address_bound_elsewhere"),
        (400, 50417, Rejected, "twilio.participant_limit"),
        (400, 50390, Rejected, "twilio.error_50390"),
        (400, 20001, Rejected, "twilio.error_20001"),
        (429, 20429, Throttled, "twilio.too_many_requests"),
        (503, 20429, Unknown, "twilio.server_error"),
        (401, 20003, Blocked, "twilio.unauthorized"),
        (403, 20003, Blocked, "twilio.unauthorized"),
        (403, 20006, Blocked, "twilio.forbidden"),
        (409, 99999, Transient, "twilio.error_99999"),
        (404, 99999, Transient, "twilio.error_99999"),
        (418, 99999, Unknown, "twilio.unlisted_answer"),
        (500, 20500, Unknown, "twilio.server_error"),
        (503, 20503, Unknown, "twilio.server_error"),
        (507, 50377, Unknown, "twilio.server_error"),
    ];
    for (status, code, class, name) in rows {
        let failure = failed(refusal(&reply(status, &[], &error(status, code)), Asked::Write));
        let summary = failure.as_ref().map(|failure| (failure.class, failure.code.as_ref()));
        assert_eq!(summary, Some((class, name)), "{status} {code}");
    }
}

#[test]
fn a_page_that_is_not_twilios_proves_nothing_but_a_429() {
    // A 404 of a proxy is no absence, and its 401 no word about our key.
    for status in (300..=599).filter(|status| *status != 429) {
        for body in
            ["<html>", "", r#"{"code":"20404"}"#, r#"{"error":{"code":20404}}"#, r#"{"message":"no"}"#]
        {
            let class =
                |asked| failed(refusal(&reply(status, &[], body), asked)).map(|failure| failure.class);
            assert_eq!(class(Asked::Write), Some(Class::Unknown), "{status} {body}");
            assert_eq!(class(Asked::Read), Some(Class::Transient), "{status} {body}");
        }
    }
    let class = failed(refusal(&reply(429, &[], "<html>"), Asked::Write)).map(|failure| failure.class);
    assert_eq!(class, Some(Class::Throttled));
}

#[test]
fn a_read_is_never_unknown() {
    for status in 200..=599 {
        for body in [error(status, 50500), "<html>".to_owned()] {
            let failure = failed(refusal(&reply(status, &[], &body), Asked::Read));
            assert!(failure.is_some_and(|failure| failure.class != Class::Unknown), "{status} {body}");
        }
    }
    assert_eq!(unreadable(&reply(200, &[], ""), Asked::Read, "x", "").class, Class::Transient);
    assert_eq!(unreadable(&reply(200, &[], ""), Asked::Write, "x", "").class, Class::Unknown);
}

#[test]
fn evidence_names_the_answer_and_quotes_nobody() {
    let headers = [("twilio-request-id", "RQ1"), ("twilio-concurrent-requests", "87"), ("retry-after", "7")];
    let refused = failed(refusal(&reply(429, &headers, &error(429, 20429)), Asked::Write));
    let failure = refused.unwrap_or_else(|| Failure::poison("a fact"));
    assert_eq!(failure.retry_after, Some(Duration::from_secs(7)));
    let shown = format!("{failure} {:?}", failure.evidence);
    assert!(!shown.contains("user-17") && !shown.contains("8675310"), "{shown}");
    let evidence = failure.evidence.unwrap_or_default();
    assert_eq!((&evidence["request_id"], &evidence["code"]), (&"RQ1".into(), &20429.into()));
    assert_eq!(evidence["concurrent_requests"], 87);
}
