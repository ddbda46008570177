//! What is refused before anything executes, and how.

mod stand;

use anyhow::Result;
use backline_sandbox::{AccountState, Config};
use serde_json::json;
use stand::{Stand, answer, header, read};

#[tokio::test]
async fn parameters_are_checked_in_stripes_words() -> Result<()> {
    let stand = Stand::default().await?;
    let good = [("amount", "5"), ("currency", "usd"), ("destination", "acct_1")];
    let with = |name: &'static str, value: &'static str| {
        let mut form: Vec<(&str, &str)> = good.iter().copied().filter(|(known, _)| *known != name).collect();
        form.push((name, value));
        form
    };
    let cases = [
        (good[..2].to_vec(), "parameter_missing", "destination"),
        (with("color", "red"), "parameter_unknown", "color"),
        (with("metadata", "red"), "parameter_unknown", "metadata"),
        (with("amount", "0"), "parameter_invalid_integer", "amount"),
        (with("amount", "1.5"), "parameter_invalid_integer", "amount"),
        (with("destination", ""), "parameter_invalid_empty", "destination"),
    ];
    for (form, code, param) in cases {
        let reply = stand.post("/v1/transfers", &form).send().await?;
        assert!(header(&reply, "request-id").is_some());
        let (status, body) = read(reply).await?;
        let error = &body["error"];
        assert_eq!(status, 400, "{body}");
        assert_eq!(
            (&error["type"], &error["code"], &error["param"]),
            (&json!("invalid_request_error"), &json!(code), &json!(param))
        );
    }
    let long = "v".repeat(501);
    for form in [
        with("currency", "xxx"),
        with("source_type", "gold"),
        vec![good[0], good[1], good[2], ("metadata[k]", &long)],
    ] {
        assert_eq!(answer(stand.post("/v1/transfers", &form)).await?.0, 400);
    }
    Ok(())
}

#[tokio::test]
async fn a_call_needs_a_secret_key_that_is_accepted() -> Result<()> {
    let stand =
        Stand::start(Config { api_keys: vec!["sk_test_stand".to_owned()], ..Config::default() }).await?;
    let bare = stand.client.get(format!("{}/v1/balance", stand.url));
    assert_eq!(answer(bare).await?.0, 401);
    for (secret, expected) in [("pk_test_stand", 401), ("sk_test_other", 401), ("sk_test_stand", 200)] {
        let request = stand.client.get(format!("{}/v1/balance", stand.url)).bearer_auth(secret);
        assert_eq!(answer(request).await?.0, expected, "{secret}");
    }
    Ok(())
}

#[tokio::test]
async fn unknown_paths_and_objects_are_not_found() -> Result<()> {
    let stand = Stand::default().await?;
    for path in ["/v1/nothing", "/v1/transfers/tr_none", "/v1/balance_transactions/é", "/v1/payouts/po_"] {
        let (status, body) = stand.get(path).await?;
        assert_eq!((status, &body["error"]["type"]), (404, &json!("invalid_request_error")), "{path}");
    }
    Ok(())
}

#[tokio::test]
async fn accounts_exist_unless_configured_otherwise() -> Result<()> {
    let accounts = [
        ("acct_gone".to_owned(), AccountState::Missing),
        ("acct_blocked".to_owned(), AccountState::Blocked),
        ("acct_unpaid".to_owned(), AccountState::PayoutsDisabled),
    ];
    let stand = Stand::start(Config { accounts: accounts.into(), ..Config::default() }).await?;
    let transfer = |to: &'static str| {
        let form = [("amount", "5"), ("currency", "usd"), ("destination", to)];
        stand.post("/v1/transfers", &form)
    };
    let code = |body: &serde_json::Value| body["error"]["code"].as_str().unwrap_or("none").to_owned();
    assert_eq!(answer(transfer("acct_any")).await?.0, 200);
    assert_eq!(code(&answer(transfer("acct_gone")).await?.1), "resource_missing");
    assert_eq!(code(&answer(transfer("acct_blocked")).await?.1), "insufficient_capabilities_for_transfer");
    let payout = |account: &'static str| {
        stand.post("/v1/payouts", &[("amount", "5"), ("currency", "usd")]).header("stripe-account", account)
    };
    assert_eq!(code(&answer(payout("acct_unpaid")).await?.1), "payouts_not_allowed");
    assert_eq!(answer(payout("acct_gone")).await?.0, 403);
    stand.control(json!({"action": "account", "id": "acct_gone", "state": "active"})).await?;
    assert_eq!(answer(transfer("acct_gone")).await?.0, 200);
    Ok(())
}
