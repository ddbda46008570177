//! Every answer parses with the strict types of the Stripe client that workers use.

mod stand;

use anyhow::{Context, Result};
use backline_sandbox::{Config, Settle};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use stand::{Stand, answer};

fn parse<T: DeserializeOwned>(body: &Value) -> Result<T> {
    serde_json::from_value(body.clone())
        .with_context(|| format!("{} refuses {body}", std::any::type_name::<T>()))
}

#[tokio::test]
async fn answers_parse_strictly() -> Result<()> {
    let stand = Stand::start(Config { settle: Settle::Polls(1), ..Config::default() }).await?;
    let (_, body) = answer(stand.transfer("op_1", "500")).await?;
    let transfer: stripe_shared::Transfer = parse(&body)?;
    assert_eq!(transfer.metadata.get("operation_id").map(String::as_str), Some("op_1"));
    let path = format!("/v1/transfers/{}", transfer.id);
    let (_, body) = answer(stand.post(&format!("{path}/reversals"), &[("amount", "100")])).await?;
    let reversal: stripe_shared::TransferReversal = parse(&body)?;
    assert_eq!(reversal.amount, 100);
    let (_, body) = stand.get(&format!("{path}?expand[]=balance_transaction&expand[]=destination")).await?;
    let transfer: stripe_shared::Transfer = parse(&body)?;
    assert_eq!(transfer.reversals.data.len(), 1);
    let settled = transfer.balance_transaction.context("no transaction")?;
    assert_eq!(settled.as_object().map(|object| object.amount), Some(-500));
    let (_, body) = stand.get("/v1/transfers?transfer_group=op_1").await?;
    let list: stripe_types::List<stripe_shared::Transfer> = parse(&body)?;
    assert_eq!(list.data.len(), 1);

    let (_, body) = answer(stand.post("/v1/payouts", &[("amount", "10"), ("currency", "usd")])).await?;
    let payout: stripe_shared::Payout = parse(&body)?;
    stand.control(json!({"action": "become", "id": payout.id, "status": "failed"})).await?;
    let (_, body) = stand.get(&format!("/v1/payouts/{}", payout.id)).await?;
    let payout: stripe_shared::Payout = parse(&body)?;
    assert_eq!(payout.status, "failed");
    for transaction in [payout.balance_transaction, payout.failure_balance_transaction] {
        let id = transaction.context("no transaction")?.into_id();
        let (_, body) = stand.get(&format!("/v1/balance_transactions/{id}")).await?;
        parse::<stripe_shared::BalanceTransaction>(&body)?;
    }

    for method in ["pm_card_visa", "pm_card_authenticationRequired"] {
        let form = [
            ("amount", "1000"),
            ("currency", "usd"),
            ("confirm", "true"),
            ("payment_method", method),
            ("transfer_data[destination]", "acct_1"),
        ];
        let (status, body) = answer(stand.post("/v1/payment_intents", &form)).await?;
        assert_eq!(status, 200);
        let intent: stripe_shared::PaymentIntent = parse(&body)?;
        if method == "pm_card_visa" {
            let id = intent.id.to_string();
            let (_, body) = answer(stand.post("/v1/refunds", &[("payment_intent", id.as_str())])).await?;
            let refund: stripe_shared::Refund = parse(&body)?;
            assert_eq!(refund.status.as_deref(), Some("succeeded"));
        }
    }
    parse::<stripe_shared::Account>(&stand.get("/v1/accounts/acct_1").await?.1)?;
    Ok(())
}

#[tokio::test]
async fn errors_parse_strictly() -> Result<()> {
    let stand = Stand::default().await?;
    let declined = [
        ("amount", "1000"),
        ("currency", "usd"),
        ("confirm", "true"),
        ("payment_method", "pm_card_chargeDeclined"),
    ];
    answer(stand.transfer("op_1", "5")).await?;
    stand.faults(json!({"match": {"operation_id": "busy"}, "fault": {"kind": "lock_timeout"}})).await?;
    let cases = [
        (stand.post("/v1/payment_intents", &declined), 402, "card_declined"),
        (stand.post("/v1/transfers", &[]), 400, "parameter_missing"),
        (stand.transfer("op_1", "6"), 400, ""),
        (stand.transfer("busy", "6"), 429, "lock_timeout"),
        (stand.fetch("/v1/refunds/re_none"), 404, "resource_missing"),
    ];
    for (request, expected, code) in cases {
        let (status, body) = answer(request).await?;
        assert_eq!(status, expected);
        let error: stripe_shared::ApiErrors = parse(&body["error"])?;
        assert_eq!(error.code.map(|code| code.to_string()).unwrap_or_default(), code);
    }
    Ok(())
}
