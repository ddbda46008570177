//! Conversations whose wanted state changes while the provider is being asked or may have acted.

use super::doubt::until;
use super::{Env, PATIENCE};
use crate::sweep::{Bench, Change, must_hold, visit};
use crate::{SANDBOX, eventually, http};
use serde_json::{Value, json};

/// A bench whose one worker has time: longer than anything here takes.
async fn patient(env: Env<'_>) -> anyhow::Result<Bench> {
    let mut bench = visit::open_rooms(env).await?;
    bench.be_patient_for(PATIENCE);
    bench.stack().clear_faults(SANDBOX)?;
    bench.member("twilio")?.kill9()?;
    bench.forget_slices().await?;
    let timers = [("BACKLINE_LEASE", "12s"), ("TWILIO_REQUEST_TIMEOUT", "5s"), ("TWILIO_BACKOFF", "2s")];
    bench.add_twilio("twilio", &timers.map(|(name, value)| (name, value.to_owned())))?;
    bench.member("twilio")?.start()?;
    Ok(bench)
}

/// Somebody joins while an attempt that has read the old members looks at the provider, finds nothing to do, and ends.
///
/// # Errors
/// A promise is broken.
pub async fn joined_while_looking(env: Env<'_>) -> anyhow::Result<()> {
    let mut bench = patient(env).await?;
    let slow = json!([{"match": {"provider": "twilio", "kind": "participant.list"}, "times": 1, "fault": {"kind": "slow", "delay": "3s"}}]);
    bench.stack().add_faults(SANDBOX, &slow)?;
    let conversation = bench.newest()?;
    let operation = bench.ask_again(conversation).await?;
    let sandbox = bench.stack().member(SANDBOX)?.address()?;
    eventually("the look to be under way", async || {
        let report: Value = serde_json::from_str(&http::must(sandbox, "GET", "/faults", &Value::Null)?)?;
        Ok(report["rules"][0]["fired"] == 1)
    })
    .await?;
    bench.change(Change::Join).await?;
    until(&bench, operation, "not exists (select from backline.intake where operation_id = $1)").await?;
    let running = "select exists (select from backline.operation where id = $1 and state = 'running' and desired_generation > claimed_generation)";
    let running: bool = sqlx::query_scalar(running).bind(operation).fetch_one(bench.pool()).await?;
    anyhow::ensure!(running, "the attempt had ended before anybody joined: nothing was shown");
    bench.settled().await?;
    must_hold(&bench).await
}

/// A conversation is deleted while its creation is in doubt, though it has happened.
///
/// # Errors
/// A promise is broken.
pub async fn deleted_in_doubt(env: Env<'_>) -> anyhow::Result<()> {
    let mut bench = patient(env).await?;
    let lost = json!([{"match": {"provider": "twilio", "kind": "conversation.create"}, "times": 1, "fault": {"kind": "drop_reply"}}]);
    bench.stack().add_faults(SANDBOX, &lost)?;
    let conversation = bench.change(Change::Open).await?;
    let operation = bench.operation_about("twilio.create", conversation)?;
    let left = "exists (select from backline.operation where id = $1 and failed_at is not null and lease_id is null)";
    until(&bench, operation, left).await?;
    bench.undo(Change::Open, conversation).await?;
    bench.settled().await?;
    let lost = bench.parts().journal()?.iter().filter(|line| line["replied"] == "dropped").count();
    anyhow::ensure!(lost >= 1, "the planned loss of the answer did not happen");
    must_hold(&bench).await
}
