//! The provider's journal: every call as it arrived and ended, which decides what happened.

use anyhow::Context;
use reqwest::Client;
use serde::Deserialize;
use serde_json::Value;

/// One line of `GET /journal`, as far as it is counted.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Line {
    pub(super) seq: u64,
    pub(super) method: String,
    #[serde(default)]
    pub(super) provider: Option<String>,
    #[serde(default)]
    pub(super) applied: bool,
    #[serde(default)]
    pub(super) replayed: bool,
    /// Status, `dropped`, or `held` on the first of the two lines of a call that waits.
    #[serde(default)]
    pub(super) replied: Value,
    /// The caller had given up before the call ended.
    #[serde(default)]
    pub(super) abandoned: bool,
    /// Calls about the same conversation that were under way when this one arrived.
    #[serde(default)]
    pub(super) overlaps: Vec<u64>,
}

impl Line {
    /// An effect whose reply never arrived.
    pub(super) fn lost_reply(&self) -> bool {
        self.method != "GET" && self.applied && self.replied == "dropped"
    }

    pub(super) fn throttled(&self) -> bool {
        self.replied == 429
    }
}

/// All lines of one provider, in the order of their end.
pub(super) async fn of(provider: &str, client: &Client, sandbox: &str) -> anyhow::Result<Vec<Line>> {
    let text = page(client, sandbox, "/journal").await?.text().await?;
    let lines = text.lines().map(|line| serde_json::from_str::<Line>(line).context("sandbox /journal"));
    let mut of = lines.collect::<anyhow::Result<Vec<_>>>()?;
    of.retain(|line| line.provider.as_deref() == Some(provider));
    Ok(of)
}

/// A page of the sandbox itself.
pub(super) async fn page(client: &Client, sandbox: &str, path: &str) -> anyhow::Result<reqwest::Response> {
    let reply = client.get(format!("{sandbox}{path}")).send().await;
    reply.and_then(reqwest::Response::error_for_status).with_context(|| format!("sandbox {path}"))
}
