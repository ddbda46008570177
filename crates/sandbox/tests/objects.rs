//! Money objects and how they move on.

mod stand;

use std::time::Duration;

use anyhow::{Context, Result};
use backline_sandbox::{Config, Settle};
use serde_json::{Value, json};
use stand::{Stand, answer};

/// Two retrievals per step: no test here depends on time.
fn by_polls() -> Config {
    Config { settle: Settle::Polls(2), ..Config::default() }
}

fn id(body: &Value) -> Result<&str> {
    body["id"].as_str().context("no id")
}

#[tokio::test]
async fn a_transfer_settles_when_its_balance_transaction_is_available() -> Result<()> {
    let stand = Stand::start(by_polls()).await?;
    let (_, transfer) = answer(stand.transfer("op_1", "500")).await?;
    let path =
        format!("/v1/balance_transactions/{}", transfer["balance_transaction"].as_str().context("txn")?);
    let (_, pending) = stand.get(&path).await?;
    assert_eq!((&pending["status"], &pending["amount"]), (&json!("pending"), &json!(-500)));
    let (_, ledger) = stand.get("/ledger").await?;
    assert_eq!(ledger["operations_settled"], 0);
    assert_eq!(stand.get(&path).await?.1["status"], "pending");
    let (_, available) = stand.get(&path).await?;
    assert_eq!(available["status"], "available");
    let (_, ledger) = stand.get("/ledger").await?;
    assert_eq!(ledger["operations"]["op_1"]["settled"], 1);
    Ok(())
}

#[tokio::test]
async fn reversals_add_up_to_the_transfer_and_no_further() -> Result<()> {
    let stand = Stand::default().await?;
    let (_, transfer) = answer(stand.transfer("op_1", "500")).await?;
    let path = format!("/v1/transfers/{}", id(&transfer)?);
    let reverse = |amount: &'static str| stand.post(&format!("{path}/reversals"), &[("amount", amount)]);
    let (status, reversal) = answer(reverse("200")).await?;
    assert_eq!((status, &reversal["transfer"]), (200, &transfer["id"]));
    assert_eq!(answer(reverse("301")).await?.0, 400);
    assert_eq!(answer(stand.post(&format!("{path}/reversals"), &[])).await?.0, 200);
    let (_, after) = stand.get(&path).await?;
    assert_eq!((&after["reversed"], &after["amount_reversed"]), (&json!(true), &json!(500)));
    let (_, list) = stand.get(&format!("{path}/reversals?limit=1")).await?;
    assert_eq!((&list["has_more"], &list["data"][0]["amount"]), (&json!(true), &json!(300)));
    assert_eq!(answer(reverse("1")).await?.0, 400);
    Ok(())
}

#[tokio::test]
async fn a_payout_belongs_to_its_account_and_may_fail_after_it_was_paid() -> Result<()> {
    let stand = Stand::start(by_polls()).await?;
    let form = [("amount", "10"), ("currency", "usd"), ("metadata[operation_id]", "op_1")];
    let (_, payout) = answer(stand.post("/v1/payouts", &form).header("stripe-account", "acct_7")).await?;
    assert_eq!(payout["status"], "pending");
    let path = format!("/v1/payouts/{}", id(&payout)?);
    assert_eq!(stand.get(&path).await?.0, 404);
    let mut seen = Vec::new();
    for _ in 0..5 {
        let (_, now) = answer(stand.fetch(&path).header("stripe-account", "acct_7")).await?;
        seen.push(now["status"].clone());
    }
    assert_eq!(seen, ["pending", "pending", "in_transit", "in_transit", "paid"]);
    let failed = json!({"action": "become", "id": payout["id"], "status": "failed", "code": "no_account"});
    stand.control(failed).await?;
    let (_, now) = answer(stand.fetch(&path).header("stripe-account", "acct_7")).await?;
    assert_eq!((&now["status"], &now["failure_code"]), (&json!("failed"), &json!("no_account")));
    Ok(())
}

#[tokio::test]
async fn intents_are_confirmed_declined_captured_and_canceled() -> Result<()> {
    let stand = Stand::default().await?;
    let intent = |more: &[(&'static str, &'static str)]| {
        let mut form = vec![("amount", "1000"), ("currency", "usd")];
        form.extend(more);
        stand.post("/v1/payment_intents", &form)
    };
    let (_, open) = answer(intent(&[])).await?;
    assert_eq!(open["status"], "requires_payment_method");
    let path = format!("/v1/payment_intents/{}", id(&open)?);
    let (_, paid) =
        answer(stand.post(&format!("{path}/confirm"), &[("payment_method", "pm_card_visa")])).await?;
    assert_eq!((&paid["status"], &paid["amount_received"]), (&json!("succeeded"), &json!(1_000)));
    assert_eq!(answer(stand.post(&format!("{path}/cancel"), &[])).await?.0, 400);

    let declined = intent(&[("confirm", "true"), ("payment_method", "pm_card_chargeDeclined")]);
    let (status, declined) = answer(declined).await?;
    assert_eq!((status, &declined["error"]["code"]), (402, &json!("card_declined")));
    let left = format!("/v1/payment_intents/{}", id(&declined["error"]["payment_intent"])?);
    assert_eq!(stand.get(&left).await?.1["status"], "requires_payment_method");

    let held =
        intent(&[("confirm", "true"), ("payment_method", "pm_card_visa"), ("capture_method", "manual")]);
    let (_, held) = answer(held).await?;
    assert_eq!(held["status"], "requires_capture");
    let capture = format!("/v1/payment_intents/{}/capture", id(&held)?);
    let (_, captured) = answer(stand.post(&capture, &[("amount_to_capture", "400")])).await?;
    assert_eq!((&captured["status"], &captured["amount_received"]), (&json!("succeeded"), &json!(400)));
    Ok(())
}

#[tokio::test]
async fn search_finds_an_intent_by_metadata_but_not_at_once() -> Result<()> {
    let stand = Stand::start(Config { search_lag: Duration::from_secs(60), ..Config::default() }).await?;
    let form = [("amount", "1000"), ("currency", "usd"), ("metadata[operation_id]", "op_1")];
    let (_, intent) = answer(stand.post("/v1/payment_intents", &form)).await?;
    let path = "/v1/payment_intents/search?query=metadata%5B'operation_id'%5D:'op_1'";
    let (_, early) = stand.get(path).await?;
    assert_eq!((&early["object"], &early["data"]), (&json!("search_result"), &json!([])));
    stand.control(json!({"action": "clock_forward", "by": "2m"})).await?;
    assert_eq!(stand.get(path).await?.1["data"][0]["id"], intent["id"]);
    assert_eq!(stand.get("/v1/payment_intents/search?query=amount%3E5").await?.0, 400);
    Ok(())
}

#[tokio::test]
async fn refunds_are_listed_by_intent_and_charge_and_may_fail_later() -> Result<()> {
    let stand = Stand::default().await?;
    stand
        .faults(json!({"match": {"path": "/v1/refunds", "method": "POST"}, "when": {"nth": [2]},
            "fault": {"kind": "becomes", "status": "failed", "after": "0ms", "code": "lost_or_stolen_card"}}))
        .await?;
    let form =
        [("amount", "1000"), ("currency", "usd"), ("confirm", "true"), ("payment_method", "pm_card_visa")];
    let (_, intent) = answer(stand.post("/v1/payment_intents", &form)).await?;
    let refund = |amount: &'static str| {
        let intent = intent["id"].as_str().unwrap_or_default().to_owned();
        stand.post("/v1/refunds", &[("payment_intent", intent.as_str()), ("amount", amount)])
    };
    let (_, first) = answer(refund("300")).await?;
    assert_eq!(first["status"], "succeeded");
    let (_, second) = answer(refund("700")).await?;
    assert_eq!(
        (&second["status"], &second["failure_reason"]),
        (&json!("failed"), &json!("lost_or_stolen_card"))
    );
    let (status, third) = answer(refund("1")).await?;
    assert_eq!((status, &third["error"]["code"]), (400, &json!("charge_already_refunded")));
    for (name, of) in [("payment_intent", &intent["id"]), ("charge", &intent["latest_charge"])] {
        let (_, list) = stand.get(&format!("/v1/refunds?{name}={}", of.as_str().context("id")?)).await?;
        assert_eq!(list["data"].as_array().map(Vec::len), Some(2), "{name}");
    }
    Ok(())
}

#[tokio::test]
async fn lists_filter_and_page_newest_first() -> Result<()> {
    let stand = Stand::default().await?;
    for n in 1..=7 {
        let group = if n % 2 == 0 { "even" } else { "odd" };
        let amount = n.to_string();
        let form = [
            ("amount", amount.as_str()),
            ("currency", "usd"),
            ("destination", "acct_1"),
            ("transfer_group", group),
        ];
        answer(stand.post("/v1/transfers", &form)).await?;
        answer(stand.transfer(&format!("other_{n}"), "9")).await?;
        if n == 4 {
            stand.control(json!({"action": "clock_forward", "by": "1h"})).await?;
        }
    }
    let amounts = |list: &Value| -> Vec<i64> {
        list["data"].as_array().into_iter().flatten().filter_map(|row| row["amount"].as_i64()).collect()
    };
    let (_, page) = stand.get("/v1/transfers?destination=acct_1&limit=3").await?;
    assert_eq!((amounts(&page), &page["has_more"]), (vec![7, 6, 5], &json!(true)));
    let cursor = page["data"][2]["id"].as_str().context("id")?;
    let (_, next) = stand.get(&format!("/v1/transfers?destination=acct_1&starting_after={cursor}")).await?;
    assert_eq!((amounts(&next), &next["has_more"]), (vec![4, 3, 2, 1], &json!(false)));
    let (_, back) =
        stand.get(&format!("/v1/transfers?destination=acct_1&ending_before={cursor}&limit=1")).await?;
    assert_eq!(amounts(&back), [6]);
    let (_, both) = stand.get("/v1/transfers?destination=acct_1&transfer_group=even").await?;
    assert_eq!(amounts(&both), [6, 4, 2]);
    let since = page["data"][2]["created"].as_i64().context("created")? - 60;
    let (_, late) = stand.get(&format!("/v1/transfers?destination=acct_1&created%5Bgte%5D={since}")).await?;
    assert_eq!(amounts(&late), [7, 6, 5]);
    let (_, early) = stand.get(&format!("/v1/transfers?destination=acct_1&created%5Blt%5D={since}")).await?;
    assert_eq!(amounts(&early), [4, 3, 2, 1]);
    assert_eq!(stand.get("/v1/transfers?starting_after=tr_none").await?.0, 400);
    Ok(())
}
