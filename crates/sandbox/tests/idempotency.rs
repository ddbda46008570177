//! The idempotency layer, as Stripe documents it.

mod stand;

use anyhow::Result;
use backline_sandbox::{Config, parse_duration};
use serde_json::json;
use stand::{Stand, answer, header, read};

#[tokio::test]
async fn a_key_replays_the_first_answer_and_applies_once() -> Result<()> {
    let stand = Stand::default().await?;
    let first = stand.transfer("op_1", "500").send().await?;
    assert_eq!(header(&first, "idempotent-replayed"), None);
    let first = first.text().await?;
    let again = stand.transfer("op_1", "500").send().await?;
    assert_eq!(header(&again, "idempotent-replayed").as_deref(), Some("true"));
    assert_eq!(header(&again, "idempotency-key").as_deref(), Some("op_1"));
    assert!(header(&again, "request-id").is_some_and(|id| id.starts_with("req_")));
    assert_eq!(again.text().await?, first);
    assert_eq!(stand.applied("op_1").await?, (1, 500));
    Ok(())
}

#[tokio::test]
async fn other_parameters_with_a_key_are_an_idempotency_error() -> Result<()> {
    let stand = Stand::default().await?;
    answer(stand.transfer("op_1", "500")).await?;
    let (status, body) = answer(stand.transfer("op_1", "501")).await?;
    assert_eq!((status, &body["error"]["type"]), (400, &json!("idempotency_error")));
    Ok(())
}

#[tokio::test]
async fn keys_are_scoped_by_account_and_not_by_credential() -> Result<()> {
    let stand = Stand::default().await?;
    let payout = |account: &str, secret: &str| {
        stand
            .post("/v1/payouts", &[("amount", "10"), ("currency", "usd")])
            .header("idempotency-key", "k")
            .header("stripe-account", account)
            .bearer_auth(secret)
    };
    let id = |body: serde_json::Value| body["id"].clone();
    let (_, one) = answer(payout("acct_a", "sk_old")).await?;
    let (_, rotated) = answer(payout("acct_a", "sk_new")).await?;
    let (_, other) = answer(payout("acct_b", "sk_old")).await?;
    assert_eq!(id(one.clone()), id(rotated));
    assert_ne!(id(one), id(other));
    Ok(())
}

#[tokio::test]
async fn a_call_in_flight_holds_its_key() -> Result<()> {
    let stand = Stand::default().await?;
    stand
        .faults(json!([{"match": {"operation_id": "op_1"}, "times": 1, "fault": {"kind": "slow", "delay": "1500ms"}}]))
        .await?;
    let slow = tokio::spawn(answer(stand.transfer("op_1", "500")));
    stand.until("/ledger", |_, ledger| ledger["operations"]["op_1"]["calls"] == 1).await?;
    let (status, body) = answer(stand.transfer("op_1", "500")).await?;
    assert_eq!((status, &body["error"]["code"]), (409, &json!("idempotency_key_in_use")));
    let (status, created) = slow.await??;
    assert_eq!(status, 200);
    let (status, replayed) = answer(stand.transfer("op_1", "500")).await?;
    assert_eq!((status, &replayed["id"]), (200, &created["id"]));
    assert_eq!(stand.applied("op_1").await?, (1, 500));
    Ok(())
}

#[tokio::test]
async fn validation_failures_store_nothing() -> Result<()> {
    let stand = Stand::default().await?;
    let (status, _) = answer(stand.transfer("op_1", "0")).await?;
    assert_eq!(status, 400);
    let (status, _) = answer(stand.transfer("op_1", "500")).await?;
    assert_eq!(status, 200);
    Ok(())
}

#[tokio::test]
async fn an_executed_400_is_stored_even_after_its_cause_is_gone() -> Result<()> {
    let stand = Stand::start(Config { funds: Some(100), ..Config::default() }).await?;
    let (status, body) = answer(stand.transfer("op_1", "500")).await?;
    assert_eq!((status, &body["error"]["code"]), (400, &json!("balance_insufficient")));
    stand.control(json!({"action": "funds", "currency": "usd", "amount": 1_000})).await?;
    let replay = stand.transfer("op_1", "500").send().await?;
    assert_eq!(header(&replay, "idempotent-replayed").as_deref(), Some("true"));
    assert_eq!(read(replay).await?.0, 400);
    // A new key is a new submission.
    let form = [("amount", "500"), ("currency", "usd"), ("destination", "acct_worker")];
    let (status, _) = answer(stand.post("/v1/transfers", &form).header("idempotency-key", "op_1:2")).await?;
    assert_eq!(status, 200);
    Ok(())
}

#[tokio::test]
async fn a_stored_500_replays_whether_it_was_applied_or_not() -> Result<()> {
    let stand = Stand::default().await?;
    stand
        .faults(json!([
            {"match": {"operation_id": "done"}, "times": 1, "fault": {"kind": "stored_error", "status": 500, "applied": true}},
            {"match": {"operation_id": "not"}, "times": 1, "fault": {"kind": "stored_error", "status": 500}},
        ]))
        .await?;
    for (operation, applied) in [("done", 1), ("not", 0)] {
        for replayed in [None, Some("true".to_owned())] {
            let reply = stand.transfer(operation, "5").send().await?;
            assert_eq!(header(&reply, "idempotent-replayed"), replayed);
            assert_eq!(header(&reply, "stripe-should-retry").as_deref(), Some("false"));
            assert_eq!(reply.status(), 500);
        }
        let (_, list) = stand.get(&format!("/v1/transfers?transfer_group={operation}")).await?;
        assert_eq!(list["data"].as_array().map(Vec::len), Some(applied));
    }
    assert_eq!(stand.fired().await?, [1, 1]);
    Ok(())
}

#[tokio::test]
async fn keys_are_forgotten_after_their_window_or_on_command() -> Result<()> {
    let stand = Stand::start(Config { key_window: parse_duration("24h")?, ..Config::default() }).await?;
    answer(stand.transfer("op_1", "5")).await?;
    stand.control(json!({"action": "clock_forward", "by": "23h"})).await?;
    answer(stand.transfer("op_1", "5")).await?;
    assert_eq!(stand.applied("op_1").await?, (1, 5));
    stand.control(json!({"action": "clock_forward", "by": "2h"})).await?;
    answer(stand.transfer("op_1", "5")).await?;
    assert_eq!(stand.applied("op_1").await?, (2, 10));
    stand.control(json!({"action": "prune_keys"})).await?;
    answer(stand.transfer("op_1", "5")).await?;
    assert_eq!(stand.applied("op_1").await?, (3, 15));
    Ok(())
}

#[tokio::test]
async fn keys_longer_than_255_characters_are_refused() -> Result<()> {
    let stand = Stand::default().await?;
    let form = [("amount", "5"), ("currency", "usd"), ("destination", "acct_worker")];
    for (length, expected) in [(255, 200), (256, 400)] {
        let request = stand.post("/v1/transfers", &form).header("idempotency-key", "k".repeat(length));
        assert_eq!(answer(request).await?.0, expected);
    }
    Ok(())
}
