//! What the provider is told to do wrong.

use anyhow::Context;
use reqwest::Client;
use serde_json::{Value, json};

/// Calls refused by one storm.
const STORM_CALLS: u64 = 25;

/// Lies told from the first call on, each decided by the seed, the rule, the operation and the call's number alone.
pub(super) fn standing() -> Value {
    let transfers = json!({"method": "POST", "path": "/v1/transfers"});
    let rule = |name: &str, share: f64, fault: Value| json!({"name": name, "match": transfers, "per": "operation", "when": {"probability": share}, "fault": fault});
    json!({"rules": [
        // Applied, and the caller never hears of it.
        rule("drop reply", 0.05, json!({"kind": "drop_reply"})),
        rule("drop request", 0.02, json!({"kind": "drop_before"})),
        // Applied, and the key answers 500 for ever.
        rule("stored 500", 0.03, json!({"kind": "stored_error", "status": 500, "applied": true})),
        rule("garbage", 0.03, json!({"kind": "garbage"})),
        rule("drip", 0.05, json!({"kind": "drip", "chunk": 100, "every": "20ms"})),
        // Keeps calls in flight, for the processes that are stopped and killed meanwhile.
        rule("slow", 0.4, json!({"kind": "slow", "delay": "400ms"})),
        {"name": "garbled lookup", "match": {"method": "GET"}, "when": {"probability": 0.02}, "fault": {"kind": "garbage"}},
    ]})
}

/// Refuses the next calls with 429, whoever makes them.
pub(super) async fn storm(client: &Client, sandbox: &str) -> anyhow::Result<()> {
    let rule = json!({
        "name": "storm", "times": STORM_CALLS,
        "fault": {"kind": "rate_limited", "reason": "global-rate", "retry_after": {"seconds": 1}},
    });
    let reply =
        client.post(format!("{sandbox}/faults")).json(&rule).send().await.context("sandbox /faults")?;
    reply.error_for_status().context("sandbox refuses the storm")?;
    Ok(())
}
