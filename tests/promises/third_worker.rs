//! The worker that `docs/writing-a-worker.md` builds keeps the promises that every worker keeps, in less than a hundred
//! lines: each committed event reaches its receiver at least once, signed, and under one id whatever happens on the way.
//!
//! The races: a worker killed before a call, after it, while it waits for the answer and before its outcome is
//! committed; replies lost after and before the receiver took the event; duplicated and reordered deliveries of the
//! broker.

use backline_promises::check::{self, CANARY, Expected};
use backline_promises::{
    Action, CrashPlan, Delivered, EMULATOR, Receipt, Receiver, Site, Stack, WEBHOOK, eventually,
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{SystemTime, UNIX_EPOCH};
use uuid::Uuid;

/// Of the tests alone: `secret-of-the-webhook-of-the-promises`.
const SECRET: &str = "whsec_c2VjcmV0LW9mLXRoZS13ZWJob29rLW9mLXRoZS1wcm9taXNlcw==";

/// A stack with the example as its only worker. Its requests may take the usual ten seconds, so its leases are longer, as they have to be;
/// it takes a few operations at a time, so that what a killed process held is not everything.
async fn stack(receiver: &Receiver) -> anyhow::Result<Stack> {
    let plan = Stack::builder()
        .worker(WEBHOOK)
        .env(WEBHOOK, "WEBHOOK_URL", &receiver.url())
        .env(WEBHOOK, "WEBHOOK_SECRET", SECRET)
        .env(WEBHOOK, "BACKLINE_LEASE", "23s")
        .env(WEBHOOK, "BACKLINE_OPERATIONS", "6")
        .env(EMULATOR, "PUBSUB_EMULATOR_ACK_DEADLINE_CAP", "1000");
    plan.start().await
}

async fn ship(stack: &Stack, order: usize) -> anyhow::Result<Uuid> {
    let payload = json!({"order_id": order, "tracking": CANARY});
    Ok(stack.emit("OrderShipped", Uuid::now_v7(), &order.to_string(), payload).await?)
}

fn order(body: &str) -> u64 {
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    body["order_id"].as_u64().unwrap_or(u64::MAX)
}

async fn operation(stack: &Stack, event: Uuid) -> anyhow::Result<Uuid> {
    let sql = "select i.id from backline.outbox_published p, lateral backline.operation_id(p.organization, 'webhook.deliver', $1::text) i(id)
        where p.id = $1 limit 1";
    let mut id = None;
    eventually("the publication", async || {
        id = sqlx::query_scalar(sql).bind(event).fetch_optional(stack.pool()).await?;
        Ok(id.is_some())
    })
    .await?;
    id.ok_or_else(|| anyhow::anyhow!("no operation of {event}"))
}

/// Every third attempt at the latest is answered honestly.
fn lies(body: &str, nth: usize) -> Receipt {
    match (nth, order(body) % 7) {
        (1, 0) | (2, 1) => Receipt::TakeAndHangUp,
        (1, 1) | (2, 2) => Receipt::HangUp,
        (1, 2) => Receipt::Say(500),
        (1, 3) => Receipt::TakeAndSay(500),
        (1, 4) => Receipt::TakeAndSay(503),
        (1, 5) => Receipt::Say(429),
        _ => Receipt::Take,
    }
}

#[tokio::test]
async fn every_event_reaches_its_receiver_signed_and_under_one_id() -> anyhow::Result<()> {
    const EVENTS: usize = 40;
    let receiver = Receiver::start(SECRET)?;
    let mut stack = stack(&receiver).await?;
    let faults = json!({"duplicate": {"probability": 1.0, "copies": 2, "new_message_id": true}, "reorder": {"window": 20}, "drop_acks": {"every": 3}});
    stack.add_faults(EMULATOR, &faults)?;
    receiver.answer(lies);
    // It has made its subscription; what is published from now on waits for it.
    stack.member(WEBHOOK)?.kill9()?;
    let mut committed = Vec::new();
    for n in 0..EVENTS {
        committed.push(ship(&stack, n).await?);
    }
    for (site, nth) in [
        ("tx.accept.commit.after", 1),
        ("webhook.call.before", 5),
        ("webhook.call.after", 3),
        ("tx.finish.commit.before", 1),
        ("tx.finish.commit.after", 1),
    ] {
        let plan = CrashPlan::new(Site { name: site.to_owned(), nth }, Action::Kill, stack.dir());
        stack.member(WEBHOOK)?.launch_with(&plan)?;
        eventually(&format!("the kill at {site}"), async || Ok(plan.fired())).await?;
        eventually(&format!("the end at {site}"), async || Ok(stack.member(WEBHOOK)?.ended()?.is_some()))
            .await?;
    }
    // And with requests that nobody has answered.
    receiver.answer(|_, _| Receipt::TakeAndWait);
    stack.member(WEBHOOK)?.start()?;
    let waiting = |one: &Delivered| one.receipt == Receipt::TakeAndWait;
    eventually("a request without an answer", async || Ok(receiver.delivered().iter().any(waiting))).await?;
    stack.member(WEBHOOK)?.kill9()?;
    receiver.answer(lies);
    stack.clear_faults(EMULATOR)?;
    stack.member(WEBHOOK)?.start()?;
    check::settled(&stack, &Expected { committed, recoveries: 10, ..Expected::default() }).await?;

    let ended = "select count(*) from backline.operation_history where kind = 'webhook.deliver' and outcome = 'succeeded'";
    assert_eq!(stack.count(ended).await?, i64::try_from(EVENTS)?);
    assert_eq!(stack.count("select count(*) from backline.operation_history").await?, i64::try_from(EVENTS)?);
    let delivered = receiver.delivered();
    let (mut ids, mut taken) = (BTreeMap::<u64, BTreeSet<(&str, &str)>>::new(), BTreeSet::new());
    #[expect(clippy::disallowed_methods, reason = "a receiver compares time stamps with its own clock")]
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    for one in &delivered {
        assert!(one.genuine, "{one:?}");
        assert!(now.abs_diff(one.timestamp) < 300, "a receiver refuses what is older: {one:?}");
        ids.entry(order(&one.body)).or_default().insert((&one.id, &one.body));
        if one.receipt.takes() {
            taken.insert(one.id.as_str());
        }
    }
    assert!(ids.values().all(|seen| seen.len() == 1), "one id and the same bytes for all attempts: {ids:?}");
    assert_eq!(ids.keys().copied().collect::<Vec<_>>(), (0..EVENTS as u64).collect::<Vec<_>>());
    assert_eq!(taken.len(), EVENTS, "as many ids as events, each taken");
    assert!(delivered.len() > EVENTS, "nothing was repeated: the faults changed nothing");
    for (name, member) in stack.members() {
        let log = member.log()?;
        assert!(
            !log.contains("c2VjcmV0") && !log.contains("secret-of-the-webhook"),
            "{name} logged the secret"
        );
    }
    Ok(())
}

#[tokio::test]
async fn a_refusal_ends_an_event_and_refused_credentials_end_none() -> anyhow::Result<()> {
    let receiver = Receiver::start(SECRET)?;
    let mut stack = stack(&receiver).await?;
    receiver.answer(|body, nth| match (order(body), nth) {
        (0, _) => Receipt::Say(410),
        (1, _) => Receipt::Say(422),
        // Refused after a reply that told nothing: nobody knows whether the first call was taken.
        (2, 1) => Receipt::Say(500),
        (2, _) => Receipt::Say(410),
        (3, 1) => Receipt::Say(401),
        _ => Receipt::Take,
    });
    let mut committed = Vec::new();
    for (n, end) in ["rejected", "rejected", "manual"].into_iter().enumerate() {
        let event = ship(&stack, n).await?;
        stack.comes_to(operation(&stack, event).await?, end).await?;
        committed.push(event);
    }
    let event = ship(&stack, 3).await?;
    let paused = "select count(*) from backline.pause where scope = 'provider_account' and name = 'webhook'";
    eventually("the pause", async || Ok(stack.count(paused).await? == 1)).await?;
    committed.push(event);
    // A worker's start is how new credentials arrive.
    stack.member(WEBHOOK)?.kill9()?;
    stack.member(WEBHOOK)?.start()?;
    stack.comes_to(operation(&stack, event).await?, "succeeded").await?;
    let calls = |n| receiver.delivered().iter().filter(|one| order(&one.body) == n).count();
    assert_eq!([0, 1, 2, 3].map(calls), [1, 1, 2, 2], "what is refused is not repeated");
    check::settled(&stack, &Expected { committed, stuck: 1, recoveries: 1, ..Expected::default() }).await
}
