//! The sandbox as these tests use it.

use std::time::{Duration, SystemTime};

use backline_failure::{Call, Deadline};
use backline_sandbox::{Config, Fault, FaultFile, Match, Per, Rule, Sandbox, Settle, When};
use backline_stripe::{Amount, CreatedWindow, Currency, Stripe};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::stand_in::stripe;

/// So long that no test settles anything by being slow.
const STEP: Duration = Duration::from_secs(60 * 60);

pub(crate) struct Provider {
    // Dropping it ends the server.
    sandbox: Sandbox,
    pub(crate) client: Stripe,
}

impl Provider {
    pub(crate) async fn honest() -> anyhow::Result<Self> {
        Self::start(Vec::new(), None).await
    }

    /// Hits POST calls with these faults, one each in order, and behaves afterwards.
    pub(crate) async fn lying(faults: Vec<Fault>) -> anyhow::Result<Self> {
        Self::start(faults, None).await
    }

    pub(crate) async fn start(faults: Vec<Fault>, funds: Option<i64>) -> anyhow::Result<Self> {
        let rules = faults.into_iter().map(|fault| Rule {
            name: None,
            matches: Match { method: Some("POST".to_owned()), ..Match::default() },
            when: When::default(),
            per: Per::default(),
            times: Some(1),
            fault,
        });
        let faults = FaultFile { rules: rules.collect(), limiter: None };
        let sandbox =
            Sandbox::start(Config { settle: Settle::After(STEP), funds, faults, ..Config::default() })
                .await?;
        let client = stripe(&sandbox.url(), "sk_test_a")?;
        Ok(Self { sandbox, client })
    }

    /// What was applied for an operation, as the provider's own books have it.
    pub(crate) async fn ledger(&self, operation_id: Uuid) -> anyhow::Result<Value> {
        let url = format!("{}/ledger", self.sandbox.url());
        let text = reqwest::Client::builder().build()?.get(url).send().await?.text().await?;
        let books: Value = serde_json::from_str(&text)?;
        Ok(books["operations"][operation_id.to_string()].clone())
    }

    /// Lets every object take its next step.
    pub(crate) async fn step(&self) -> anyhow::Result<()> {
        self.control(json!({"action": "clock_forward", "by": "1h"})).await
    }

    pub(crate) async fn control(&self, action: Value) -> anyhow::Result<()> {
        let url = format!("{}/control", self.sandbox.url());
        let answer = reqwest::Client::builder().build()?.post(url).json(&action).send().await?;
        anyhow::ensure!(answer.status().is_success(), "{}", answer.text().await?);
        Ok(())
    }
}

/// A call of a fresh operation.
pub(crate) fn fresh() -> Call {
    let operation = Uuid::new_v4();
    let minute = Duration::from_secs(60);
    Call::new(operation, 1, 1, 1, format!("{operation}-1-1"), minute, Deadline::after(minute))
}

pub(crate) fn euros(minor: i64) -> anyhow::Result<Amount> {
    Ok(Amount::from_minor(minor, Currency::new("eur")?)?)
}

#[expect(clippy::disallowed_methods, reason = "the sandbox stamps objects with the process clock")]
pub(crate) fn just_now() -> CreatedWindow {
    CreatedWindow::new(SystemTime::now(), SystemTime::now())
}
