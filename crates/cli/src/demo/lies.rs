//! What the provider is told to do wrong.

use super::journal;
use anyhow::Context;
use reqwest::Client;
use serde::Deserialize;
use serde_json::{Value, json};

/// Calls refused by one storm.
const STORM_CALLS: u64 = 25;

/// Name of the rule that keeps Twilio's writes from its reads.
const HIDDEN: &str = "twilio hides";

/// Lies told from the first call on, each decided by the seed, the rule, the operation and the call's number alone.
pub(super) fn standing() -> Value {
    let rules = [payments(), conversations()].concat();
    json!({"rules": rules})
}

fn payments() -> Vec<Value> {
    let transfers = json!({"method": "POST", "path": "/v1/transfers"});
    let rule = |name: &str, share: f64, fault: Value| json!({"name": name, "match": transfers, "per": "operation", "when": {"probability": share}, "fault": fault});
    vec![
        // Applied, and the caller never hears of it.
        rule("drop reply", 0.05, json!({"kind": "drop_reply"})),
        rule("drop request", 0.02, json!({"kind": "drop_before"})),
        // Applied, and the key answers 500 for ever.
        rule("stored 500", 0.03, json!({"kind": "stored_error", "status": 500, "applied": true})),
        rule("garbage", 0.03, json!({"kind": "garbage"})),
        rule("drip", 0.05, json!({"kind": "drip", "chunk": 100, "every": "20ms"})),
        // Keeps calls in flight, for the processes that are stopped and killed meanwhile.
        rule("slow", 0.4, json!({"kind": "slow", "delay": "400ms"})),
        json!({"name": "garbled lookup", "match": {"provider": "stripe", "method": "GET"}, "when": {"probability": 0.02}, "fault": {"kind": "garbage"}}),
    ]
}

/// Late effects land within the declared linger of a second, and reads lag less than the declared 500 ms.
fn conversations() -> Vec<Value> {
    let rule = |name: &str, matches: &Value, share: f64, fault: Value| json!({"name": name, "match": matches, "per": "key", "when": {"probability": share}, "fault": fault});
    let writes = [
        "conversation.create",
        "conversation.update",
        "conversation.delete",
        "participant.add",
        "participant.remove",
    ];
    let mut rules = Vec::new();
    for kind in writes {
        let of = json!({"provider": "twilio", "kind": kind});
        rules.extend([
            rule("twilio drops reply", &of, 0.08, json!({"kind": "drop_reply"})),
            rule("twilio drops request", &of, 0.03, json!({"kind": "drop_before"})),
            rule(
                "twilio acts late",
                &of,
                0.06,
                json!({"kind": "late", "apply_after": "700ms", "close_after": "150ms"}),
            ),
            rule("twilio 500", &of, 0.03, json!({"kind": "stored_error", "status": 500, "applied": true})),
            rule("twilio garbage", &of, 0.03, json!({"kind": "garbage"})),
            rule(HIDDEN, &of, 0.25, json!({"kind": "hide", "for": "300ms"})),
        ]);
    }
    let all = json!({"provider": "twilio"});
    rules.extend([
        rule("twilio 20429", &all, 0.03, json!({"kind": "rate_limited", "reason": "concurrency"})),
        rule("twilio slow", &all, 0.5, json!({"kind": "slow", "delay": "200ms"})),
        rule(
            "twilio cuts",
            &json!({"provider": "twilio", "method": "GET"}),
            0.02,
            json!({"kind": "truncated"}),
        ),
    ]);
    rules
}

/// One entry of `GET /faults`.
#[derive(Debug, Deserialize)]
struct Armed {
    rule: Named,
    fired: u64,
}

#[derive(Debug, Deserialize)]
struct Named {
    name: String,
}

#[derive(Debug, Deserialize)]
struct Rules {
    rules: Vec<Armed>,
}

/// How many of Twilio's writes were hidden from reads for a while. No call is answered otherwise for it, so no journal
/// line says so.
pub(super) async fn hidden(client: &Client, sandbox: &str) -> anyhow::Result<u64> {
    let all: Rules = journal::page(client, sandbox, "/faults").await?.json().await?;
    Ok(all.rules.iter().filter(|armed| armed.rule.name == HIDDEN).map(|armed| armed.fired).sum())
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
