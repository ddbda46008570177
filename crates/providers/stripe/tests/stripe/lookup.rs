//! Lookups: what silence proves, what a surprise is, and when to say "still unknown".

use crate::stand_in::{OPERATION, StandIn, answer, call, instruction, list, stripe, transfer};
use backline_failure::Resolution;
use backline_stripe::{Settlement, find_transfer, transfer_settlement};
use serde_json::{Value, json};

async fn look(pages: Vec<Value>) -> anyhow::Result<(Resolution<String>, usize)> {
    let server = StandIn::serve(pages.into_iter().map(|page| answer(200, page)).collect()).await?;
    let found = find_transfer(&stripe(&server.url, "sk_test_a")?, &call(), &instruction()?).await?;
    Ok((found.map(|transfer| transfer.id), server.seen().len()))
}

#[tokio::test]
async fn the_group_is_the_question_and_the_pages_are_read_to_the_end() -> anyhow::Result<()> {
    let ours = OPERATION.to_string();
    let server = StandIn::serve(vec![answer(200, list(&[transfer("tr_1", &ours, 1250)], false))]).await?;
    let found = find_transfer(&stripe(&server.url, "sk_test_a")?, &call(), &instruction()?).await?;
    assert!(matches!(found, Resolution::Applied(found) if found.id == "tr_1"));
    let query = server.seen().pop().and_then(|seen| seen.uri.query().map(str::to_owned));
    assert_eq!(query, Some(format!("limit=100&transfer_group={OPERATION}")));

    assert_eq!(look(vec![list(&[], false)]).await?, (Resolution::NotApplied, 1));
    Ok(())
}

#[tokio::test]
async fn surprises_are_conflicts() -> anyhow::Result<()> {
    let ours = OPERATION.to_string();
    let good = transfer("tr_1", &ours, 1250);
    let mut elsewhere = good.clone();
    elsewhere["destination"] = json!("acct_2");
    let mut dollars = good.clone();
    dollars["currency"] = json!("usd");
    let cases = [
        ("twice", list(&[good.clone(), transfer("tr_2", &ours, 1250)], false)),
        ("amount", list(&[transfer("tr_1", &ours, 1251)], false)),
        ("destination", list(&[elsewhere], false)),
        ("currency", list(&[dollars], false)),
        ("stranger in our group", list(&[transfer("tr_9", "someone else", 1250)], false)),
    ];
    for (name, page) in cases {
        let (resolution, _) = look(vec![page]).await?;
        assert!(matches!(resolution, Resolution::Conflict(_)), "{name}: {resolution:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_list_without_an_end_is_still_unknown() -> anyhow::Result<()> {
    let ours = OPERATION.to_string();
    let (resolution, reads) =
        look(vec![list(&[transfer("tr_1", &ours, 1250)], true), list(&[], true)]).await?;
    assert_eq!((resolution, reads), (Resolution::StillUnknown, 2));
    Ok(())
}

#[tokio::test]
async fn a_second_one_on_a_later_page_is_seen() -> anyhow::Result<()> {
    let ours = OPERATION.to_string();
    let pages =
        vec![list(&[transfer("tr_1", &ours, 1250)], true), list(&[transfer("tr_2", &ours, 1250)], false)];
    assert!(matches!(look(pages).await?, (Resolution::Conflict(_), 2)));
    Ok(())
}

#[tokio::test]
async fn a_transfer_is_settled_when_available_and_not_reversed() -> anyhow::Result<()> {
    let ours = OPERATION.to_string();
    let transaction = |status: &str| {
        json!({
            "id": "txn_1", "object": "balance_transaction", "amount": -1250, "available_on": 1_700_000_000,
            "balance_type": "payments", "created": 1_700_000_000, "currency": "eur", "description": null,
            "exchange_rate": null, "fee": 0, "fee_details": [], "net": -1250, "reporting_category": "transfer",
            "source": "tr_1", "status": status, "type": "transfer",
        })
    };
    let with = |status: &str, reversed: i64| {
        let mut shown = transfer("tr_1", &ours, 1250);
        shown["balance_transaction"] = transaction(status);
        shown["amount_reversed"] = json!(reversed);
        shown
    };
    let cases = [
        (vec![with("available", 0)], Settlement::Settled),
        (vec![with("pending", 0)], Settlement::Pending),
        (vec![with("available", 250)], Settlement::Reversed { minor: 250 }),
        (vec![with("frozen", 0)], Settlement::Unlisted { status: "frozen".to_owned() }),
        (vec![transfer("tr_1", &ours, 1250), transaction("available")], Settlement::Settled),
    ];
    for (answers, expected) in cases {
        let server = StandIn::serve(answers.into_iter().map(|body| answer(200, body)).collect()).await?;
        let client = stripe(&server.url, "sk_test_a")?;
        assert_eq!(transfer_settlement(&client, &call(), "tr_1").await?, expected);
    }
    Ok(())
}
