//! Every effect from instruction to settlement, against a provider that behaves.

use backline_failure::{Class, Resolution};
use backline_stripe::*;
use serde_json::json;

use crate::sandbox::{Provider, euros, fresh, just_now};

fn payment(payment_method: &str) -> anyhow::Result<PaymentIntentInstruction> {
    Ok(PaymentIntentInstruction {
        amount: euros(5000)?,
        confirmation: Confirmation::OffSession,
        account: None,
        customer: Some("cus_1".to_owned()),
        payment_method: Some(payment_method.to_owned()),
        description: None,
    })
}

#[tokio::test]
async fn a_transfer_and_its_reversal() -> anyhow::Result<()> {
    let provider = Provider::honest().await?;
    let client = &provider.client;
    let call = fresh();
    let instruction = TransferInstruction {
        amount: euros(1250)?,
        destination: "acct_1".to_owned(),
        // Every character that a form must escape.
        description: Some("50 % off & more = 1+1; née\n#[x]".to_owned()),
    };

    assert_eq!(find_transfer(client, &call, &instruction).await?, Resolution::NotApplied);
    let made = create_transfer(client, &call, &instruction).await?;
    assert_eq!(create_transfer(client, &call, &instruction).await?, made, "same key, same transfer");
    assert_eq!(find_transfer(client, &call, &instruction).await?, Resolution::Applied(made.clone()));
    let books = provider.ledger(call.operation_id).await?;
    assert_eq!((books["applied"].as_u64(), books["amount"].as_i64()), (Some(1), Some(1250)));

    assert_eq!(transfer_settlement(client, &call, &made.id).await?, Settlement::Pending);
    provider.step().await?;
    assert_eq!(transfer_settlement(client, &call, &made.id).await?, Settlement::Settled);

    let back = fresh();
    let reversal = ReversalInstruction { transfer: made.id.clone(), amount: euros(250)? };
    assert_eq!(find_reversal(client, &back, &reversal).await?, Resolution::NotApplied);
    let reversed = create_reversal(client, &back, &reversal).await?;
    assert_eq!(find_reversal(client, &back, &reversal).await?, Resolution::Applied(reversed.clone()));
    assert_eq!(reversal_settlement(client, &back, &reversed).await?, Settlement::Pending);
    provider.step().await?;
    assert_eq!(reversal_settlement(client, &back, &reversed).await?, Settlement::Settled);
    assert_eq!(transfer_settlement(client, &call, &made.id).await?, Settlement::Reversed { minor: 250 });
    Ok(())
}

#[tokio::test]
async fn a_payment_and_its_refund() -> anyhow::Result<()> {
    let provider = Provider::honest().await?;
    let client = &provider.client;
    let (call, instruction) = (fresh(), payment("pm_card_visa")?);

    assert_eq!(find_payment_intent(client, &call, &instruction, just_now()).await?, Resolution::NotApplied);
    let paid = create_payment_intent(client, &call, &instruction).await?;
    let found = find_payment_intent(client, &call, &instruction, just_now()).await?;
    assert_eq!(found.map(|intent| intent.id), Resolution::Applied(paid.id.clone()));
    assert_eq!(payment_intent_settlement(client, &call, None, &paid.id).await?, Settlement::Settled);

    let back = fresh();
    let refund = RefundInstruction {
        source: RefundSource::PaymentIntent(paid.id),
        amount: euros(1000)?,
        account: None,
        reason: Some(RefundReason::RequestedByCustomer),
        reverse_transfer: false,
        refund_application_fee: false,
    };
    assert_eq!(find_refund(client, &back, &refund).await?, Resolution::NotApplied);
    let made = create_refund(client, &back, &refund).await?;
    assert_eq!(find_refund(client, &back, &refund).await?, Resolution::Applied(made.clone()));

    // A refund that succeeded may still come back from the bank.
    provider
        .control(json!({"action": "become", "id": made.id, "status": "failed", "code": "declined"}))
        .await?;
    let settlement = refund_settlement(client, &back, None, &made.id).await?;
    assert_eq!(settlement, Settlement::Failed { reason: "declined".to_owned() });
    Ok(())
}

#[tokio::test]
async fn a_payout_of_a_connected_account() -> anyhow::Result<()> {
    let provider = Provider::honest().await?;
    let client = &provider.client;
    let call = fresh();
    let instruction = PayoutInstruction {
        amount: euros(700)?,
        account: Some("acct_7".to_owned()),
        destination: None,
        method: PayoutMethod::Standard,
        statement_descriptor: Some("WEEK 7".to_owned()),
    };
    let account = instruction.account.as_deref();

    assert_eq!(find_payout(client, &call, &instruction, just_now()).await?, Resolution::NotApplied);
    let made = create_payout(client, &call, &instruction).await?;
    let found = find_payout(client, &call, &instruction, just_now()).await?;
    assert_eq!(found.map(|payout| payout.id), Resolution::Applied(made.id.clone()));

    for expected in [Settlement::Pending, Settlement::Pending, Settlement::Settled] {
        assert_eq!(payout_settlement(client, &call, account, &made.id).await?, expected);
        provider.step().await?;
    }
    provider
        .control(json!({"action": "become", "id": made.id, "status": "failed", "code": "account_closed"}))
        .await?;
    let settlement = payout_settlement(client, &call, account, &made.id).await?;
    assert_eq!(settlement, Settlement::Failed { reason: "account_closed".to_owned() });
    Ok(())
}

#[tokio::test]
async fn a_declined_payment_is_refused_and_what_it_leaves_behind_is_not_a_payment() -> anyhow::Result<()> {
    let provider = Provider::honest().await?;
    let client = &provider.client;
    let (call, declined) = (fresh(), payment("pm_card_chargeDeclined")?);

    let Err(failure) = create_payment_intent(client, &call, &declined).await else {
        anyhow::bail!("a declined card paid");
    };
    assert_eq!((failure.class, failure.code.as_ref()), (Class::Rejected, "stripe.card_declined"));
    assert!(failure.key_spent);
    assert_eq!(find_payment_intent(client, &call, &declined, just_now()).await?, Resolution::NotApplied);
    Ok(())
}

#[tokio::test]
async fn a_fingerprint_depends_on_everything_that_is_asked_and_on_nothing_else() -> anyhow::Result<()> {
    let call = fresh();
    let (one, two) = (payment("pm_card_visa")?, payment("pm_card_mastercard")?);
    assert_eq!(one.fingerprint(call.operation_id), one.clone().fingerprint(call.operation_id));
    assert_ne!(one.fingerprint(call.operation_id), two.fingerprint(call.operation_id));
    assert_ne!(one.fingerprint(call.operation_id), one.fingerprint(fresh().operation_id));

    let stored = serde_json::to_string(&one)?;
    let read: PaymentIntentInstruction = serde_json::from_str(&stored)?;
    assert_eq!(read.fingerprint(call.operation_id), one.fingerprint(call.operation_id));
    Ok(())
}
