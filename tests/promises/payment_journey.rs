//! From a committed authorization to settled money: every part of the product, once.

use backline_promises::check::{self, Expected};
use backline_promises::{PAYMENTS, Stack, eventually};
use serde_json::json;
use uuid::Uuid;

#[tokio::test]
async fn an_authorized_payment_is_submitted_once_and_settles() -> anyhow::Result<()> {
    let stack = Stack::builder().worker(PAYMENTS).start().await?;
    let instruction =
        json!({"type": "transfer", "amount": {"minor": 1250, "currency": "eur"}, "destination": "acct_x"});
    let payload = json!({"payment_id": "p1", "authorization": "a1", "instruction": instruction});
    stack.emit("PaymentAuthorized", Uuid::now_v7(), "p1", payload).await?;
    eventually("the settlement", async || {
        Ok(stack.count("select count(*) from backline.operation_history where kind = 'stripe.settlement' and outcome = 'succeeded'").await? == 1)
    })
    .await?;
    let applied: Vec<_> = stack.journal()?.into_iter().filter(|line| line["applied"] == true).collect();
    assert_eq!(applied.len(), 1, "{applied:?}");
    assert_eq!(applied[0]["amount"], 1250);
    assert_eq!(stack.count("select count(*) from backline.operation").await?, 0);
    check::settled(&stack, &Expected::default()).await
}
