//! The client crates that workers use build their requests and read the sandbox's answers.

mod stand;

use std::fmt::Display;

use anyhow::{Context, Result};
use backline_sandbox::{Config, Settle};
use bytes::Bytes;
use stand::Stand;
use stripe_client_core::{
    CustomizedStripeRequest, IdempotencyKey, RequestStrategy, StripeClient, StripeClientErr, StripeMethod,
    StripeRequest,
};
use stripe_connect::transfer::{CreateTransfer, ListTransfer, RetrieveTransfer};
use stripe_connect::transfer_reversal::{CreateIdTransferReversal, ListIdTransferReversal};
use stripe_core::balance_transaction::RetrieveBalanceTransaction;
use stripe_core::payment_intent::{ConfirmPaymentIntent, CreatePaymentIntent, ListPaymentIntent};
use stripe_core::payout::{CreatePayout, ListPayout, RetrievePayout};
use stripe_core::refund::{CreateRefund, ListRefund, RetrieveRefund};
use stripe_types::Currency;

/// The typed requests over the stand's HTTP client.
struct Client<'a>(&'a Stand);

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Failed(String);

impl StripeClientErr for Failed {
    fn deserialize_err(reason: impl Display) -> Self {
        Self(format!("answer does not parse: {reason}"))
    }
}

impl StripeClient for Client<'_> {
    type Err = Failed;

    async fn execute(&self, request: CustomizedStripeRequest) -> Result<Bytes, Failed> {
        let (request, overrides) = request.into_pieces();
        let query = request.query.map(|query| format!("?{query}")).unwrap_or_default();
        let url = format!("{}/v1{}{query}", self.0.url, request.path);
        let mut call = match request.method {
            StripeMethod::Get => self.0.client.get(url),
            StripeMethod::Post => self.0.client.post(url),
            StripeMethod::Delete => self.0.client.delete(url),
        };
        if let Some(RequestStrategy::Idempotent(key)) = overrides.request_strategy {
            call = call.header("idempotency-key", key.as_str());
        }
        if let Some(account) = overrides.account_id {
            call = call.header("stripe-account", account.as_str());
        }
        let reply = call
            .bearer_auth("sk_test_stand")
            .body(request.body.unwrap_or_default())
            .send()
            .await
            .map_err(|error| Failed(error.to_string()))?;
        let status = reply.status();
        let body = reply.bytes().await.map_err(|error| Failed(error.to_string()))?;
        if status.is_success() { Ok(body) } else { Err(Failed(String::from_utf8_lossy(&body).into_owned())) }
    }
}

#[tokio::test]
async fn transfers_and_reversals() -> Result<()> {
    let stand = Stand::start(Config { settle: Settle::Polls(0), ..Config::default() }).await?;
    let client = Client(&stand);
    let create = || {
        CreateTransfer::new(Currency::USD, "acct_worker")
            .amount(500)
            .transfer_group("op_1")
            .metadata([("operation_id".to_owned(), "op_1".to_owned())])
            .customize()
    };
    let key = || Ok::<_, anyhow::Error>(RequestStrategy::Idempotent(IdempotencyKey::new("k_1")?));
    let transfer = create().request_strategy(key()?).send(&client).await?;
    let again = create().request_strategy(key()?).send(&client).await?;
    assert_eq!(transfer.id, again.id);
    let list = ListTransfer::new().transfer_group("op_1").limit(3).send(&client).await?;
    assert_eq!(list.data.len(), 1);
    let transaction = transfer.balance_transaction.context("no transaction")?.into_id();
    let transaction = RetrieveBalanceTransaction::new(transaction).send(&client).await?;
    assert_eq!((transaction.status.as_str(), transaction.net), ("available", -500));
    CreateIdTransferReversal::new(transfer.id.clone()).amount(200).send(&client).await?;
    let reversals = ListIdTransferReversal::new(transfer.id.clone()).send(&client).await?;
    assert_eq!(reversals.data.len(), 1);
    let expand = vec!["balance_transaction".to_owned()];
    let transfer = RetrieveTransfer::new(transfer.id).expand(expand).send(&client).await?;
    assert_eq!((transfer.amount_reversed, transfer.reversals.data.len()), (200, 1));
    assert!(transfer.balance_transaction.is_some_and(|transaction| transaction.is_object()));
    assert_eq!(stand.applied("op_1").await?, (1, 500));
    Ok(())
}

#[tokio::test]
async fn payouts_intents_and_refunds() -> Result<()> {
    let stand = Stand::start(Config { settle: Settle::Polls(0), ..Config::default() }).await?;
    let client = Client(&stand);
    let account = || stripe_shared::AccountId::from("acct_7");
    let payout = CreatePayout::new(10, Currency::EUR).customize().account_id(account()).send(&client).await?;
    let paid = RetrievePayout::new(payout.id).customize().account_id(account()).send(&client).await?;
    assert_eq!(paid.status, "paid");
    let payouts = ListPayout::new().customize().account_id(account()).send(&client).await?;
    assert_eq!(payouts.data.len(), 1);

    let intent = CreatePaymentIntent::new(1_000, Currency::USD)
        .payment_method("pm_card_visa")
        .transfer_group("op_2")
        .send(&client)
        .await?;
    let intent = ConfirmPaymentIntent::new(intent.id).send(&client).await?;
    assert_eq!(intent.status, stripe_shared::PaymentIntentStatus::Succeeded);
    assert_eq!(ListPaymentIntent::new().send(&client).await?.data.len(), 1);
    let refund = CreateRefund::new().payment_intent(intent.id.to_string()).amount(400).send(&client).await?;
    let refund = RetrieveRefund::new(refund.id).send(&client).await?;
    assert_eq!(refund.status.as_deref(), Some("succeeded"));
    assert_eq!(ListRefund::new().payment_intent(intent.id.to_string()).send(&client).await?.data.len(), 1);
    Ok(())
}
