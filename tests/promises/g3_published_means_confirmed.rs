//! G3, and H3: "published" means that the broker confirmed that event id.
//!
//! Predicate: every row of `outbox_published` is in the broker's own log; all copies of an id carry the same bytes; no
//! event has two records of its first publication.
//!
//! The races: a relay that dies after the broker accepted and before it recorded, a confirmation that is lost, a
//! recording whose COMMIT reply is lost, and a relay that sleeps through its lease while another takes its lanes.

use backline_promises::check::{self, Expected};
use backline_promises::{Action, CrashPlan, EMULATOR, RELAY, Site, Stack, eventually};
use serde_json::json;
use uuid::Uuid;

const WAITING: &str = "select count(*) from backline.outbox where parked_at is null";
const RECORDED: &str = "select count(*) from backline.outbox_published";

async fn emit(stack: &Stack, count: usize) -> anyhow::Result<Vec<Uuid>> {
    let organization = Uuid::now_v7();
    let mut ids = Vec::new();
    for n in 0..count {
        ids.push(stack.emit("OrderPlaced", organization, &format!("o{}", n % 5), json!({"n": n})).await?);
    }
    Ok(ids)
}

/// Copies of an event in the broker's log.
fn copies(stack: &Stack, id: Uuid) -> anyhow::Result<usize> {
    let log = stack.published()?;
    Ok(log.iter().filter(|line| line["attributes"]["ce-id"] == id.to_string()).count())
}

#[tokio::test]
async fn a_relay_that_dies_between_confirmation_and_record_publishes_the_same_identity_again()
-> anyhow::Result<()> {
    let mut stack = Stack::builder().start().await?;
    stack.member(RELAY)?.kill9()?;
    let committed = emit(&stack, 1).await?;
    let site = Site { name: "broker.publish.after".to_owned(), nth: 1 };
    let plan = CrashPlan::new(site, Action::Kill, stack.dir());
    stack.member(RELAY)?.launch_with(&plan)?;
    eventually("the crash", async || Ok(stack.member(RELAY)?.ended()?.is_some())).await?;
    assert!(plan.fired());
    assert_eq!(
        (copies(&stack, committed[0])?, stack.count(RECORDED).await?),
        (1, 0),
        "accepted, not recorded"
    );
    stack.member(RELAY)?.start()?;
    eventually("the record", async || Ok(stack.count(RECORDED).await? == 1)).await?;
    assert_eq!(copies(&stack, committed[0])?, 2, "a duplicate with its identity, which consumers absorb");
    check::settled(&stack, &Expected { committed, ..Expected::recovered() }).await
}

#[tokio::test]
async fn a_lost_confirmation_is_asked_for_again_and_recorded_once() -> anyhow::Result<()> {
    let mut stack = Stack::builder().start().await?;
    stack.add_faults(
        EMULATOR,
        &json!({"publish": [{"mode": "accept-then-fail", "code": "UNAVAILABLE", "times": 3}]}),
    )?;
    let committed = emit(&stack, 20).await?;
    check::settled(&stack, &Expected { committed, ..Expected::recovered() }).await
}

#[tokio::test]
async fn a_refusing_broker_has_nothing_recorded() -> anyhow::Result<()> {
    let mut stack = Stack::builder().start().await?;
    stack.add_faults(EMULATOR, &json!({"publish": [{"mode": "refuse", "code": "UNAVAILABLE"}]}))?;
    let committed = emit(&stack, 20).await?;
    eventually("a refused publication", async || {
        Ok(stack.metric(RELAY, "backline_relay_outages_total")? > 0.0)
    })
    .await?;
    assert_eq!((stack.count(RECORDED).await?, stack.count(WAITING).await?), (0, 20));
    stack.clear_faults(EMULATOR)?;
    check::settled(&stack, &Expected { committed, ..Expected::recovered() }).await
}

#[tokio::test]
async fn a_record_whose_commit_reply_is_lost_stands_once() -> anyhow::Result<()> {
    let stack = Stack::builder().behind_proxy().start().await?;
    stack.proxy()?.swallow_commit_of("backline.outbox_published");
    let committed = emit(&stack, 10).await?;
    eventually("the lost reply", async || Ok(stack.proxy()?.swallowed() == 1)).await?;
    check::settled(&stack, &Expected { committed, ..Expected::recovered() }).await
}

#[tokio::test]
async fn a_relay_that_slept_through_its_lease_records_nothing_for_its_successor() -> anyhow::Result<()> {
    let mut stack = Stack::builder().relay_later("second-relay").start().await?;
    stack.member(RELAY)?.kill9()?;
    let committed = emit(&stack, 10).await?;
    // Asleep with the broker's confirmation in hand, not recorded yet.
    let site = Site { name: "broker.publish.after".to_owned(), nth: 1 };
    let plan = CrashPlan::new(site, Action::Stop, stack.dir());
    stack.member(RELAY)?.launch_with(&plan)?;
    eventually("the first relay to stop", async || Ok(plan.fired())).await?;
    stack.member("second-relay")?.start()?;
    eventually("the second relay to publish everything", async || Ok(stack.count(RECORDED).await? == 10))
        .await?;
    let sql =
        "select md5(string_agg(id::text || published_at, '' order by id)) from backline.outbox_published";
    let before: String = sqlx::query_scalar(sql).fetch_one(stack.pool()).await?;
    stack.member(RELAY)?.resume()?;
    // Awake again it finds its lanes lost, and takes its turn like any other.
    let more = emit(&stack, 10).await?;
    stack.member("second-relay")?.kill9()?;
    eventually("the first relay to work again", async || Ok(stack.count(RECORDED).await? == 20)).await?;
    let first = "select md5(string_agg(id::text || published_at, '' order by id)) from backline.outbox_published where id = any($1)";
    let after: String = sqlx::query_scalar(first).bind(&committed).fetch_one(stack.pool()).await?;
    assert_eq!(before, after, "a stale relay changes nothing that its successor recorded");
    let committed = [committed, more].concat();
    check::settled(&stack, &Expected { committed, ..Expected::recovered() }).await
}
