//! A relay that dies at any durable boundary loses no event and records none that the broker has not confirmed.
//!
//! The boundaries are not listed here: a recording run finds them, so a new one is visited without anyone
//! remembering it. A fault that never fired fails the test.

use backline_promises::{Action, CrashPlan, RELAY, Stack, eventually, recorded};
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;
use uuid::Uuid;

const EMPTY: &str = "select count(*) from backline.outbox where parked_at is null";

#[tokio::test]
async fn no_event_is_lost_wherever_the_relay_dies() -> anyhow::Result<()> {
    // Every second crash leaves a lane to a dead holder; a short lease is most of what this test waits for.
    let stack = Stack::builder().env(RELAY, "BACKLINE_RELAY_LEASE", "2s").env(
        RELAY,
        "BACKLINE_RELAY_PUBLISH_TIMEOUT",
        "1s",
    );
    let mut stack = stack.record_crash_points().start().await?;
    stack.emit("OrderPlaced", Uuid::now_v7(), "recording", json!({})).await?;
    eventually("the recording run's event", async || Ok(stack.count(EMPTY).await? == 0)).await?;
    stack.member(RELAY)?.stop(Duration::from_secs(30))?;
    // The first arrival at each name; later ones run the same code.
    let sites: BTreeSet<_> =
        recorded(&stack.record_of(RELAY))?.into_iter().filter(|site| site.nth == 1).collect();
    assert!(sites.len() >= 6, "begin, commit and publish, before and after each: {sites:?}");

    for site in sites {
        let id = stack.emit("OrderPlaced", Uuid::now_v7(), &site.name, json!({})).await?;
        let plan = CrashPlan::new(site.clone(), Action::Kill, stack.dir());
        stack.member(RELAY)?.launch_with(&plan)?;
        eventually(&format!("the crash at {}", site.name), async || {
            Ok(stack.member(RELAY)?.ended()?.is_some())
        })
        .await?;
        assert!(plan.fired(), "{} was recorded and never reached again", site.name);

        stack.member(RELAY)?.start()?;
        eventually(&format!("the event after a crash at {}", site.name), async || {
            Ok(stack.count(EMPTY).await? == 0)
        })
        .await?;
        let accepted = serde_json::to_string(&stack.published()?)?;
        assert!(accepted.contains(&id.to_string()), "{}: recorded as published, never accepted", site.name);
        // Killed too, so that the next run takes lanes from a dead holder.
        stack.member(RELAY)?.kill9()?;
    }
    let twice = "select count(*) - count(distinct id) from backline.outbox_published";
    assert_eq!(stack.count(twice).await?, 0, "an event has one record of its publication");
    Ok(())
}
