//! A sandbox, a client, and the few calls that every test makes.
#![expect(dead_code, reason = "each test file is its own program and uses a part of this")]

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use backline_sandbox::{Config, Sandbox};
use reqwest::{Client, Method, RequestBuilder, Response};
use serde_json::Value;

pub(crate) const TWILIO_KEY: &str = "SK0123456789abcdef0123456789abcdef";

pub(crate) struct Stand {
    pub(crate) url: String,
    pub(crate) client: Client,
    /// Kept alive; absent when the sandbox is another process.
    sandbox: Option<Sandbox>,
}

impl Stand {
    pub(crate) async fn start(config: Config) -> Result<Self> {
        let sandbox = Sandbox::start(config).await?;
        let mut stand = Self::at(sandbox.url())?;
        stand.sandbox = Some(sandbox);
        Ok(stand)
    }

    pub(crate) async fn default() -> Result<Self> {
        Self::start(Config::default()).await
    }

    pub(crate) fn at(url: String) -> Result<Self> {
        // Several tests share a process; all but the first find it installed.
        drop(rustls::crypto::ring::default_provider().install_default());
        let client = Client::builder().timeout(Duration::from_secs(20)).build()?;
        Ok(Self { url, client, sandbox: None })
    }

    pub(crate) async fn stop(mut self) {
        if let Some(sandbox) = self.sandbox.take() {
            sandbox.stop().await;
        }
    }

    pub(crate) fn post(&self, path: &str, form: &[(&str, &str)]) -> RequestBuilder {
        self.client.post(format!("{}{path}", self.url)).bearer_auth("sk_test_stand").form(form)
    }

    pub(crate) fn fetch(&self, path: &str) -> RequestBuilder {
        self.client.get(format!("{}{path}", self.url)).bearer_auth("sk_test_stand")
    }

    /// A transfer of `operation` with the key of the same name.
    pub(crate) fn transfer(&self, operation: &str, amount: &str) -> RequestBuilder {
        let form = [
            ("amount", amount),
            ("currency", "usd"),
            ("destination", "acct_worker"),
            ("transfer_group", operation),
            ("metadata[operation_id]", operation),
        ];
        self.post("/v1/transfers", &form).header("idempotency-key", operation)
    }

    /// A call of Twilio's API, with a path below its conversations.
    pub(crate) fn twilio(&self, method: Method, path: &str, form: &[(&str, &str)]) -> RequestBuilder {
        let with_form = method == Method::POST;
        let request = self
            .client
            .request(method, format!("{}/v1/Conversations{path}", self.url))
            .basic_auth(TWILIO_KEY, Some("secret"))
            .header("x-backline-operation", "op_1");
        if with_form { request.form(form) } else { request }
    }

    /// SID of a new conversation.
    pub(crate) async fn conversation(&self, name: &str) -> Result<String> {
        let (status, body) = answer(self.twilio(Method::POST, "", &[("UniqueName", name)])).await?;
        ensure!(status == 201, "not created: {body}");
        Ok(body["sid"].as_str().context("sid")?.to_owned())
    }

    /// A chat participant joins.
    pub(crate) fn join(&self, sid: &str, identity: &str) -> RequestBuilder {
        self.twilio(Method::POST, &format!("/{sid}/Participants"), &[("Identity", identity)])
    }

    pub(crate) async fn get(&self, path: &str) -> Result<(u16, Value)> {
        answer(self.fetch(path)).await
    }

    pub(crate) async fn faults(&self, rules: Value) -> Result<()> {
        let response = self.client.post(format!("{}/faults", self.url)).json(&rules).send().await?;
        let status = response.status();
        ensure!(status == 200, "rules refused: {}", response.text().await?);
        Ok(())
    }

    /// How often each armed rule fired.
    pub(crate) async fn fired(&self) -> Result<Vec<u64>> {
        let (_, report) = self.get("/faults").await?;
        let rules = report["rules"].as_array().context("rules")?;
        Ok(rules.iter().filter_map(|rule| rule["fired"].as_u64()).collect())
    }

    pub(crate) async fn control(&self, action: Value) -> Result<Value> {
        let (status, body) = answer(self.client.post(format!("{}/control", self.url)).json(&action)).await?;
        ensure!(status == 200, "control refused");
        Ok(body)
    }

    /// What was applied for an operation: count and minor units.
    pub(crate) async fn applied(&self, operation: &str) -> Result<(u64, i64)> {
        let (_, ledger) = self.get(&format!("/ledger?operation_id={operation}")).await?;
        let entry = &ledger["operations"][operation];
        Ok((entry["applied"].as_u64().unwrap_or(0), entry["amount"].as_i64().unwrap_or(0)))
    }

    pub(crate) async fn journal(&self) -> Result<Vec<Value>> {
        let text = self.fetch("/journal").send().await?.text().await?;
        text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
    }

    /// Asks again until `done` holds, at most ten seconds.
    pub(crate) async fn until(&self, path: &str, done: impl Fn(u16, &Value) -> bool) -> Result<Value> {
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let (status, body) = self.get(path).await?;
            if done(status, &body) {
                return Ok(body);
            }
            ensure!(Instant::now() < deadline, "condition never held at {path}: {body}");
            tokio::task::yield_now().await;
        }
    }
}

/// Status and JSON body.
pub(crate) async fn answer(request: RequestBuilder) -> Result<(u16, Value)> {
    read(request.send().await?).await
}

pub(crate) async fn read(response: Response) -> Result<(u16, Value)> {
    let status = response.status().as_u16();
    Ok((status, response.json().await?))
}

pub(crate) fn header(response: &Response, name: &str) -> Option<String> {
    Some(response.headers().get(name)?.to_str().ok()?.to_owned())
}
