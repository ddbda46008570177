//! Lies that decide whether an effect exists and whether the caller hears of it.

mod stand;

use std::time::Duration;

use anyhow::{Context, Result};
use backline_sandbox::Config;
use serde_json::{Value, json};
use stand::{Stand, answer, header, read};

#[tokio::test]
async fn a_dropped_reply_hides_an_effect_that_the_key_finds_again() -> Result<()> {
    let stand = Stand::default().await?;
    stand
        .faults(json!({"match": {"path": "/v1/transfers"}, "when": {"nth": [1]}, "fault": {"kind": "drop_reply"}}))
        .await?;
    assert!(stand.transfer("op_1", "5").send().await.is_err());
    assert_eq!(stand.applied("op_1").await?, (1, 5));
    let (status, _) = answer(stand.transfer("op_1", "5")).await?;
    assert_eq!((status, stand.applied("op_1").await?), (200, (1, 5)));
    let journal = stand.journal().await?;
    let posts: Vec<(&Value, &Value)> = journal
        .iter()
        .filter(|line| line["method"] == "POST")
        .map(|line| (&line["applied"], &line["replied"]))
        .collect();
    assert_eq!(posts, [(&json!(true), &json!("dropped")), (&json!(false), &json!(200))]);
    Ok(())
}

#[tokio::test]
async fn a_call_dropped_before_it_applies_leaves_nothing() -> Result<()> {
    let stand = Stand::default().await?;
    stand.faults(json!({"times": 1, "match": {"method": "POST"}, "fault": {"kind": "drop_before"}})).await?;
    assert!(stand.transfer("op_1", "5").send().await.is_err());
    assert_eq!(stand.applied("op_1").await?, (0, 0));
    let reply = stand.transfer("op_1", "5").send().await?;
    assert_eq!((header(&reply, "idempotent-replayed"), reply.status().as_u16()), (None, 200));
    Ok(())
}

#[tokio::test]
async fn a_late_call_applies_after_its_caller_gave_up() -> Result<()> {
    let stand = Stand::default().await?;
    stand
        .faults(json!([
            {"match": {"operation_id": "closed", "method": "POST"}, "times": 1,
             "fault": {"kind": "late", "apply_after": "300ms", "close_after": "10ms"}},
            {"match": {"operation_id": "hung", "method": "POST"}, "times": 1, "fault": {"kind": "late", "apply_after": "300ms"}},
        ]))
        .await?;
    assert!(stand.transfer("closed", "5").send().await.is_err());
    let hung = stand.transfer("hung", "5").timeout(Duration::from_millis(50)).send().await;
    assert!(hung.is_err_and(|error| error.is_timeout()));
    for operation in ["closed", "hung"] {
        stand.until("/ledger", |_, ledger| ledger["operations"][operation]["applied"] == 1).await?;
        let (_, list) = stand.get(&format!("/v1/transfers?transfer_group={operation}")).await?;
        assert_eq!(list["data"].as_array().map(Vec::len), Some(1));
        assert_eq!(answer(stand.transfer(operation, "5")).await?.0, 200);
        assert_eq!(stand.applied(operation).await?, (1, 5));
    }
    let journal = stand.journal().await?;
    for operation in ["closed", "hung"] {
        let lines: Vec<[&Value; 2]> = journal
            .iter()
            .filter(|line| line["operation_id"] == operation)
            .map(|line| [&line["replied"], &line["applied"]])
            .collect();
        let expected =
            [[json!("held"), json!(false)], [json!("dropped"), json!(true)], [json!(200), json!(false)]];
        assert_eq!(lines, expected.each_ref().map(|[replied, applied]| [replied, applied]));
    }
    Ok(())
}

#[tokio::test]
async fn refusals_before_the_key_store_nothing_and_say_why() -> Result<()> {
    let stand = Stand::default().await?;
    stand
        .faults(json!([
            {"when": {"first": 2}, "match": {"operation_id": "in_use"}, "fault": {"kind": "in_use"}},
            {"times": 1, "match": {"operation_id": "rate"}, "fault": {"kind": "rate_limited", "reason": "endpoint-rate", "retry_after": {"seconds": 3}}},
            {"times": 1, "match": {"operation_id": "date"}, "fault": {"kind": "rate_limited", "reason": "global-rate", "retry_after": {"date_in": -5}}},
            {"times": 1, "match": {"operation_id": "junk"}, "fault": {"kind": "rate_limited", "reason": "global-rate", "retry_after": {"raw": "soon"}}},
            {"times": 1, "match": {"operation_id": "lock"}, "fault": {"kind": "lock_timeout"}},
            {"times": 1, "match": {"operation_id": "expired"}, "fault": {"kind": "unauthorized"}},
            {"times": 1, "match": {"operation_id": "forbidden"}, "fault": {"kind": "forbidden"}},
            {"times": 1, "match": {"operation_id": "down"}, "fault": {"kind": "refuse", "status": 503, "should_retry": true, "headers": {"x-shed": "yes"}}},
        ]))
        .await?;
    let cases = [
        ("in_use", 409, None, None),
        ("in_use", 409, None, None),
        ("rate", 429, Some("endpoint-rate"), Some("3")),
        ("date", 429, Some("global-rate"), None),
        ("junk", 429, Some("global-rate"), Some("soon")),
        ("lock", 429, None, None),
        ("expired", 401, None, None),
        ("forbidden", 403, None, None),
        ("down", 503, None, None),
    ];
    for (operation, status, reason, retry_after) in cases {
        let reply = stand.transfer(operation, "5").send().await?;
        assert_eq!(reply.status(), status, "{operation}");
        assert_eq!(header(&reply, "stripe-rate-limited-reason").as_deref(), reason, "{operation}");
        if let Some(retry_after) = retry_after {
            assert_eq!(header(&reply, "retry-after").as_deref(), Some(retry_after));
        }
        if operation == "date" {
            assert!(header(&reply, "retry-after").is_some_and(|date| date.ends_with(" GMT")));
        }
        if operation == "down" {
            assert_eq!(header(&reply, "stripe-should-retry").as_deref(), Some("true"));
            assert_eq!(header(&reply, "x-shed").as_deref(), Some("yes"));
        }
        assert!(read(reply).await?.1["error"]["message"].is_string());
        assert_eq!(stand.applied(operation).await?.0, 0);
    }
    for (operation, ..) in cases.into_iter().skip(1) {
        assert_eq!(answer(stand.transfer(operation, "5")).await?.0, 200, "{operation}");
        assert_eq!(stand.applied(operation).await?, (1, 5));
    }
    assert_eq!(stand.fired().await?, [2, 1, 1, 1, 1, 1, 1, 1]);
    Ok(())
}

#[tokio::test]
async fn one_credential_expires_while_another_works() -> Result<()> {
    let stand = Stand::default().await?;
    stand.faults(json!({"match": {"api_key": "sk_old"}, "fault": {"kind": "unauthorized"}})).await?;
    let call = |secret: &str| stand.client.get(format!("{}/v1/balance", stand.url)).bearer_auth(secret);
    let (status, body) = answer(call("sk_old")).await?;
    assert_eq!((status, &body["error"]["code"]), (401, &json!("api_key_expired")));
    assert_eq!(answer(call("sk_new")).await?.0, 200);
    Ok(())
}

#[tokio::test]
async fn a_lagging_lookup_does_not_see_what_the_key_replays() -> Result<()> {
    let stand = Stand::default().await?;
    stand.faults(json!({"match": {"operation_id": "op_1", "method": "POST"}, "fault": {"kind": "hide", "for": "1h"}})).await?;
    let (_, transfer) = answer(stand.transfer("op_1", "5")).await?;
    let path = format!("/v1/transfers/{}", transfer["id"].as_str().context("id")?);
    assert_eq!(stand.get(&path).await?.0, 404);
    let (_, list) = stand.get("/v1/transfers?transfer_group=op_1").await?;
    assert_eq!(list["data"], json!([]));
    assert_eq!(answer(stand.transfer("op_1", "5")).await?.1["id"], transfer["id"]);
    stand.control(json!({"action": "clock_forward", "by": "2h"})).await?;
    assert_eq!(stand.get(&path).await?.0, 200);

    let slow = Config { lookup_lag: Duration::from_secs(3_600), ..Config::default() };
    let stand = Stand::start(slow).await?;
    let (_, transfer) = answer(stand.transfer("op_1", "5")).await?;
    assert_eq!(stand.get(&format!("/v1/transfers/{}", transfer["id"].as_str().context("id")?)).await?.0, 404);
    Ok(())
}

#[tokio::test]
async fn a_lookup_itself_can_be_slow_or_lost() -> Result<()> {
    let stand = Stand::default().await?;
    stand
        .faults(json!([
            {"match": {"method": "GET", "path": "/v1/transfers"}, "when": {"nth": [1]}, "fault": {"kind": "drop_reply"}},
            {"match": {"method": "GET", "path": "/v1/transfers"}, "when": {"nth": [2]}, "fault": {"kind": "slow", "delay": "1h"}},
            {"match": {"method": "GET", "path": "/v1/transfers"}, "when": {"nth": [2]}, "fault": {"kind": "stored_error", "status": 503}},
        ]))
        .await?;
    let lost = stand.fetch("/v1/transfers").send().await;
    assert!(lost.is_err_and(|error| !error.is_timeout()));
    let slow = stand.fetch("/v1/transfers").timeout(Duration::from_millis(100)).send().await;
    assert!(slow.is_err_and(|error| error.is_timeout()));
    assert_eq!(stand.get("/v1/transfers").await?.0, 503);
    assert_eq!(stand.get("/v1/transfers").await?.0, 200);
    Ok(())
}

#[tokio::test]
async fn probability_depends_on_the_seed_and_not_on_order() -> Result<()> {
    let rule = json!({"match": {"method": "POST"}, "per": "operation", "when": {"probability": 0.5}, "fault": {"kind": "in_use"}});
    let mut outcomes = Vec::new();
    for reversed in [false, true] {
        let stand = Stand::start(Config { seed: 42, ..Config::default() }).await?;
        stand.faults(rule.clone()).await?;
        let mut operations: Vec<u32> = (0..40).collect();
        if reversed {
            operations.reverse();
        }
        let mut hit = Vec::new();
        for n in operations {
            if answer(stand.transfer(&format!("op_{n}"), "5")).await?.0 == 409 {
                hit.push(n);
            }
        }
        hit.sort_unstable();
        assert_eq!(stand.fired().await?, [u64::try_from(hit.len())?]);
        assert!((8..32).contains(&hit.len()), "{hit:?}");
        outcomes.push(hit);
    }
    assert_eq!(outcomes[0], outcomes[1]);
    Ok(())
}

#[tokio::test]
async fn rules_are_listed_removed_and_refused_by_name() -> Result<()> {
    let stand = Stand::default().await?;
    stand.faults(json!([{"name": "a", "fault": {"kind": "in_use"}}, {"name": "b", "fault": {"kind": "forbidden"}}])).await?;
    assert_eq!(answer(stand.transfer("op_1", "5")).await?.0, 409);
    answer(stand.client.delete(format!("{}/faults/1", stand.url))).await?;
    assert_eq!(answer(stand.transfer("op_1", "5")).await?.0, 403);
    answer(stand.client.delete(format!("{}/faults", stand.url))).await?;
    assert_eq!(answer(stand.transfer("op_1", "5")).await?.0, 200);
    let wrong = stand
        .client
        .post(format!("{}/faults", stand.url))
        .json(&json!({"fault": {"kind": "drip", "evry": "1ms"}}));
    let (status, body) = answer(wrong).await?;
    assert_eq!(status, 400);
    assert!(body["error"].as_str().is_some_and(|reason| reason.contains("evry")), "{body}");
    Ok(())
}

#[tokio::test]
async fn the_limiter_refuses_while_too_many_calls_are_held() -> Result<()> {
    let stand = Stand::default().await?;
    stand
        .faults(json!({
            "rules": [{"match": {"method": "POST"}, "times": 1, "fault": {"kind": "slow", "delay": "1500ms"}}],
            "limiter": {"per_second": 1000.0, "max_concurrent": 1, "path": "/v1/", "retry_after": {"seconds": 7}},
        }))
        .await?;
    let held = tokio::spawn(answer(stand.transfer("op_1", "5")));
    stand.until("/ledger", |_, ledger| ledger["held"] == 1).await?;
    let refused = stand.transfer("op_2", "5").send().await?;
    assert_eq!(header(&refused, "stripe-rate-limited-reason").as_deref(), Some("global-concurrency"));
    assert_eq!(header(&refused, "retry-after").as_deref(), Some("7"));
    assert_eq!(held.await??.0, 200);
    assert_eq!(answer(stand.transfer("op_2", "5")).await?.0, 200);
    assert_eq!(stand.get("/ledger").await?.1["peak_held"], 1);
    Ok(())
}

#[tokio::test]
async fn the_limiter_lets_lets_its_rate_through_and_counts_the_rest() -> Result<()> {
    let stand = Stand::default().await?;
    stand.faults(json!({"limiter": {"per_second": 0.001, "burst": 3.0, "path": "/v1/transfers"}})).await?;
    let mut statuses = Vec::new();
    for n in 0..5 {
        let reply = stand.transfer(&format!("op_{n}"), "5").send().await?;
        if reply.status() == 429 {
            assert_eq!(header(&reply, "stripe-rate-limited-reason").as_deref(), Some("global-rate"));
            assert_eq!(header(&reply, "retry-after"), None);
        }
        statuses.push(reply.status().as_u16());
    }
    assert_eq!(statuses, [200, 200, 200, 429, 429]);
    assert_eq!(stand.get("/v1/balance").await?.0, 200);
    let (_, report) = stand.get("/faults").await?;
    assert_eq!((&report["limiter"]["allowed"], &report["limiter"]["refused"]), (&json!(3), &json!(2)));
    Ok(())
}
