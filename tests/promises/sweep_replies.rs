//! The effect happened and the reply was lost: at the provider, at the broker, and at the COMMIT itself.

use anyhow::Context;
use backline_dev_cluster::paths::workspace;
use backline_promises::sweep::{Bench, Change, must_hold, open, open_rooms, survive};
use backline_promises::{EMULATOR, PgProxy, SANDBOX, eventually};
use serde_json::json;
use std::fmt;

/// Benches at a time.
const SHARDS: usize = 3;

/// Whose reply is lost.
#[derive(Debug, Clone)]
enum Lost {
    /// The n-th POST to the provider has its effect and no answer.
    Post(u64),
    /// The first request about a conversation that such a change leads to has its effect and no answer.
    Request(Change),
    /// The broker accepts a request and says that it did not.
    Publish,
    /// The COMMIT of the transaction that ran this statement, of a relay or worker.
    Commit(&'static str, &'static str),
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lost reply: {self:?}")
    }
}

/// Statements whose transactions decide something; the first line of each file is part of what the server is sent.
const COMMITS: &[(&str, &str)] = &[
    ("relay", "crates/outbox/sql/take_lanes.sql"),
    ("relay", "crates/outbox/sql/mark_published.sql"),
    ("relay", "crates/outbox/sql/release_lane.sql"),
    ("worker", "crates/runtime/sql/seal_deliveries.sql"),
    ("worker", "crates/runtime/sql/take_intake.sql"),
    ("worker", "crates/runtime/sql/claim.sql"),
    ("worker", "crates/runtime/sql/finish.sql"),
    ("worker", "crates/runtime/sql/leave.sql"),
    ("worker", "crates/runtime/sql/claim_unknown.sql"),
    ("worker", "crates/runtime/sql/reclaim.sql"),
    ("worker", "crates/runtime/sql/renew_leases.sql"),
];

/// As [`COMMITS`], of the Twilio worker: those that payments do not have. A handler's own rows and follow-up are part of
/// the finish, a lookup without a key at the provider begins with `claim_unknown`.
const OF_CONVERSATIONS: &[(&str, &str)] = &[
    ("twilio", "crates/runtime/sql/mark_left.sql"),
    ("twilio", "crates/runtime/sql/claim_unknown.sql"),
    ("twilio", "crates/runtime/sql/end_generation.sql"),
    ("twilio", "crates/runtime/sql/leave.sql"),
    ("twilio", "workers/twilio/sql/created.sql"),
    ("twilio", "workers/twilio/sql/touched.sql"),
    ("twilio", "workers/twilio/sql/ended.sql"),
    ("twilio", "workers/twilio/sql/gone.sql"),
];

#[test]
fn a_lost_reply_about_a_conversation_is_no_failure_and_no_second_effect() -> anyhow::Result<()> {
    let mut items: Vec<Lost> = Change::ALL.map(Lost::Request).to_vec();
    items.extend(OF_CONVERSATIONS.iter().map(|(role, file)| Lost::Commit(role, file)));
    survive("lost replies", SHARDS, items, async || open_rooms(&[]).await, run)
}

#[test]
fn a_lost_reply_is_no_failure_and_no_second_effect() -> anyhow::Result<()> {
    let mut items: Vec<Lost> = (1..=3).map(Lost::Post).collect();
    items.push(Lost::Publish);
    items.extend(COMMITS.iter().map(|(role, file)| Lost::Commit(role, file)));
    survive("lost replies", SHARDS, items, async || open(&[]).await, run)
}

async fn run(bench: &mut Bench, lost: &Lost) -> anyhow::Result<()> {
    match lost {
        Lost::Post(nth) => {
            let rule = json!([{"match": {"method": "POST"}, "when": {"nth": [nth]}, "fault": {"kind": "drop_reply"}}]);
            let before = dropped(bench)?;
            bench.stack().add_faults(SANDBOX, &rule)?;
            bench.pay().await?;
            bench.settled().await?;
            anyhow::ensure!(dropped(bench)? > before, "no answer was dropped");
        }
        Lost::Request(change) => {
            let kind = change.request();
            let rule = json!([{"match": {"provider": "twilio", "kind": kind}, "times": 1, "fault": {"kind": "drop_reply"}}]);
            bench.stock().await?;
            let before = dropped(bench)?;
            bench.stack().clear_faults(SANDBOX)?;
            bench.stack().add_faults(SANDBOX, &rule)?;
            bench.change(*change).await?;
            bench.settled().await?;
            anyhow::ensure!(dropped(bench)? == before + 1, "no answer to {kind} was dropped");
        }
        Lost::Publish => {
            bench
                .stack()
                .add_faults(EMULATOR, &json!({"publish": [{"mode": "accept-then-fail", "times": 1}]}))?;
            bench.pay().await?;
            bench.settled().await?;
            let accepted = bench.parts().published()?;
            let mut ids: Vec<_> =
                accepted.iter().map(|line| line["attributes"]["ce-id"].to_string()).collect();
            let all = ids.len();
            ids.sort_unstable();
            ids.dedup();
            anyhow::ensure!(ids.len() < all, "nothing was published twice");
        }
        Lost::Commit(role, file) => commit(bench, role, file).await?,
    }
    must_hold(bench).await
}

fn dropped(bench: &Bench) -> anyhow::Result<usize> {
    Ok(bench.parts().journal()?.iter().filter(|line| line["replied"] == "dropped").count())
}

/// The member goes through a proxy that forwards the COMMIT, waits for its answer, and cuts the connection instead.
async fn commit(bench: &mut Bench, role: &str, file: &str) -> anyhow::Result<()> {
    let statement = std::fs::read_to_string(workspace()?.join(file))?;
    let text = statement.lines().next().context("the file is empty")?;
    if role == "twilio" {
        bench.stock().await?;
    }
    let proxy = PgProxy::start(bench.stack().server().port())?;
    let url = bench.database_url_at(proxy.port());
    bench.member(role)?.kill9()?;
    bench.forget_slices().await?;
    let env = [("DATABASE_URL", url)];
    match role {
        "relay" => bench.add_relay("proxied", &env)?,
        "twilio" => bench.add_twilio("proxied", &env)?,
        _ => bench.add_worker("proxied", &env)?,
    }
    bench.member("proxied")?.start()?;
    proxy.swallow_commit_of(text);
    // An answer that is lost as well brings the worker to repeat, to look up and to reclaim.
    if role == "twilio" {
        for kind in ["conversation.create", "participant.add"] {
            let rule =
                json!({"match": {"kind": kind}, "when": {"nth": [1]}, "fault": {"kind": "drop_reply"}});
            bench.stack().add_faults(SANDBOX, &rule)?;
        }
        bench.converse().await?;
    } else {
        let rule =
            json!([{"match": {"method": "POST"}, "when": {"nth": [1]}, "fault": {"kind": "drop_reply"}}]);
        bench.stack().add_faults(SANDBOX, &rule)?;
        bench.pay().await?;
    }
    eventually(&format!("the reply to the COMMIT of {file} to be lost"), async || Ok(proxy.swallowed() > 0))
        .await?;
    bench.settled().await?;
    bench.member("proxied")?.kill9()?;
    bench.forget_slices().await?;
    bench.member(role)?.start()?;
    bench.settled().await
}
