//! A provider that lies: each lie has the class that keeps the money single.

use backline_failure::{Class, Failure, Resolution};
use backline_sandbox::{BadText, Fault};
use backline_stripe::{TransferInstruction, create_transfer, find_transfer};
use serde_json::json;

use crate::sandbox::{Provider, euros, fresh};

fn instruction() -> anyhow::Result<TransferInstruction> {
    Ok(TransferInstruction { amount: euros(1250)?, destination: "acct_1".to_owned(), description: None })
}

fn summary(failure: &Failure) -> (Class, &str, bool) {
    (failure.class, &failure.code, failure.key_spent)
}

fn stored(status: u16, applied: bool) -> Fault {
    Fault::StoredError { status, code: None, applied, should_retry: None }
}

#[tokio::test]
async fn the_first_answer_has_its_class_and_the_same_key_never_pays_twice() -> anyhow::Result<()> {
    use Class::{Blocked, Throttled, Transient, Unknown};
    let limited = || Fault::RateLimited { reason: "global-rate".to_owned(), retry_after: None };
    let bad_text = |text| Fault::BadText { text, status: 502, applied: true };
    let html = |status| Fault::Html { status, applied: true };
    // The fault, what is known of it, and whether the effect exists all the same.
    let cases = [
        (Fault::DropReply, (Unknown, "stripe.connection_lost"), true),
        (Fault::DropBefore, (Unknown, "stripe.connection_lost"), false),
        (Fault::Reset { after_bytes: 20 }, (Unknown, "stripe.answer_lost"), true),
        (Fault::Truncated, (Unknown, "stripe.unreadable_answer"), true),
        (Fault::Garbage { status: 200, applied: true }, (Unknown, "stripe.unreadable_answer"), true),
        (html(200), (Unknown, "stripe.unreadable_answer"), true),
        (html(502), (Unknown, "stripe.server_error"), true),
        (html(400), (Unknown, "stripe.unlisted_answer"), true),
        (
            Fault::HugeError { status: 502, bytes: 2_000_000, applied: true },
            (Unknown, "stripe.answer_too_large"),
            true,
        ),
        (bad_text(BadText::Nul), (Unknown, "stripe.server_error"), true),
        (bad_text(BadText::LoneSurrogate), (Unknown, "stripe.server_error"), true),
        (bad_text(BadText::EmojiCut), (Unknown, "stripe.server_error"), true),
        (Fault::InUse, (Transient, "stripe.key_in_use"), false),
        (limited(), (Throttled, "stripe.rate_limited"), false),
        (Fault::LockTimeout, (Throttled, "stripe.lock_timeout"), false),
        (Fault::Unauthorized, (Blocked, "stripe.unauthorized"), false),
        (Fault::Forbidden, (Blocked, "stripe.forbidden"), false),
    ];
    for (fault, expected, applied) in cases {
        let name = format!("{fault:?}");
        let provider = Provider::lying(vec![fault]).await?;
        let (client, call, instruction) = (&provider.client, fresh(), instruction()?);

        let Err(failure) = create_transfer(client, &call, &instruction).await else {
            anyhow::bail!("{name}: believed");
        };
        assert_eq!(summary(&failure), (expected.0, expected.1, false), "{name}");
        assert!(failure.detail.len() <= 500 && !failure.detail.contains('\0'), "{name}");
        assert!(call.may_have_left(), "{name}");
        let found = find_transfer(client, &call, &instruction).await?;
        assert_eq!(matches!(found, Resolution::Applied(_)), applied, "{name}: {found:?}");

        create_transfer(client, &call, &instruction).await?;
        assert_eq!(provider.ledger(call.operation_id).await?["applied"], 1, "{name}");
    }
    Ok(())
}

#[tokio::test]
async fn a_key_in_use_is_waited_for_under_the_same_key() -> anyhow::Result<()> {
    // Field case 67: two answers "in progress", then the saved success.
    let provider = Provider::lying(vec![Fault::DropReply, Fault::InUse, Fault::InUse]).await?;
    let (client, call, instruction) = (&provider.client, fresh(), instruction()?);
    let mut codes = Vec::new();
    for _ in 0..3 {
        let failure = create_transfer(client, &call, &instruction).await.err();
        codes.extend(failure.map(|failure| failure.code.into_owned()));
    }
    assert_eq!(codes, ["stripe.connection_lost", "stripe.key_in_use", "stripe.key_in_use"]);
    create_transfer(client, &call, &instruction).await?;
    let books = provider.ledger(call.operation_id).await?;
    assert_eq!((books["applied"].as_u64(), books["keys"].as_array().map(Vec::len)), (Some(1), Some(1)));
    Ok(())
}

#[tokio::test]
async fn a_stored_500_stays_unknown_when_it_is_replayed_and_a_lookup_tells() -> anyhow::Result<()> {
    for applied in [true, false] {
        let provider = Provider::lying(vec![stored(500, applied)]).await?;
        let (client, call, instruction) = (&provider.client, fresh(), instruction()?);
        for code in ["stripe.server_error", "stripe.server_error_replayed"] {
            let failure = create_transfer(client, &call, &instruction).await.err();
            let summary = failure.as_ref().map(summary);
            assert_eq!(summary, Some((Class::Unknown, code, false)));
        }
        let found = find_transfer(client, &call, &instruction).await?;
        assert_eq!(matches!(found, Resolution::Applied(_)), applied, "{found:?}");
    }
    Ok(())
}

#[tokio::test]
async fn missing_funds_spend_the_key_and_funding_heals_the_next_submission() -> anyhow::Result<()> {
    let provider = Provider::start(Vec::new(), Some(100)).await?;
    let (client, mut call, instruction) = (&provider.client, fresh(), instruction()?);
    for attempt in 0..2 {
        let failure = create_transfer(client, &call, &instruction).await.err();
        let summary = failure.as_ref().map(summary);
        assert_eq!(
            summary,
            Some((Class::Transient, "stripe.balance_insufficient", true)),
            "attempt {attempt}"
        );
        provider.control(json!({"action": "funds", "currency": "eur", "amount": 100_000})).await?;
    }
    call.key.push_str("-next");
    create_transfer(client, &call, &instruction).await?;
    assert_eq!(provider.ledger(call.operation_id).await?["amount"], 1250);
    Ok(())
}

#[tokio::test]
async fn a_key_used_with_other_parameters_is_not_taken_for_a_refusal() -> anyhow::Result<()> {
    let provider = Provider::honest().await?;
    let (client, call, first) = (&provider.client, fresh(), instruction()?);
    create_transfer(client, &call, &first).await?;

    let other = TransferInstruction { amount: euros(9900)?, ..first };
    let failure = create_transfer(client, &call, &other).await.err();
    assert_eq!(failure.as_ref().map(summary), Some((Class::Unknown, "stripe.key_reused", false)));
    assert!(matches!(find_transfer(client, &call, &other).await?, Resolution::Conflict(_)));
    assert_eq!(provider.ledger(call.operation_id).await?["applied"], 1);
    Ok(())
}
