//! The client of the test's provider, and the one place where a request may leave.

use backline_failure::{Call, Class, Failure, Resolution};
use reqwest::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;

#[derive(Clone)]
pub(crate) struct Provider {
    base: String,
    credential: String,
    http: reqwest::Client,
}

/// What the provider made.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Made {
    pub(crate) effect: u64,
}

impl Provider {
    pub(crate) fn new(address: &str, credential: &str) -> anyhow::Result<Provider> {
        Ok(Provider {
            base: format!("http://{address}/effects"),
            credential: credential.to_owned(),
            http: reqwest::Client::builder().pool_max_idle_per_host(0).build()?,
        })
    }

    /// Asks for the effect. `patience` replaces the call's own timeout for work that is meant to be long.
    pub(crate) async fn submit(
        &self,
        call: &Call,
        kind: &str,
        value: &Value,
        patience: Option<Duration>,
    ) -> Result<Made, Failure> {
        let _permit = call.admit().await?;
        if call.deadline.passed() {
            return Err(Failure::transient("promise.lease_over"));
        }
        let body = json!({
            "operation": call.operation_id, "generation": call.generation, "submission": call.submission,
            "attempt": call.attempt, "key": call.key, "kind": kind, "value": value,
        });
        let request = self.http.post(&self.base).timeout(patience.unwrap_or(call.timeout));
        let request = request.header("authorization", &self.credential).json(&body);
        call.mark_may_have_left();
        backline_crash_point::reach("promise.request.before");
        let answer = request.send().await;
        backline_crash_point::reach("promise.request.after");
        let answer = answer.map_err(|_| Failure::unknown("promise.no_answer"))?;
        let wait = answer.headers().get("retry-after").and_then(|v| v.to_str().ok()?.parse().ok());
        let failure = match answer.status() {
            StatusCode::OK => {
                return answer.json().await.map_err(|_| Failure::unknown("promise.unreadable"));
            }
            StatusCode::CONFLICT => Failure::transient("promise.in_use"),
            StatusCode::TOO_MANY_REQUESTS => Failure::throttled("promise.slow_down"),
            StatusCode::FORBIDDEN => Failure::blocked("promise.forbidden"),
            StatusCode::UNPROCESSABLE_ENTITY => Failure::rejected("promise.refused"),
            _ => Failure::unknown("promise.unlisted_status"),
        };
        Err(match wait {
            Some(seconds) => failure.with_retry_after(Duration::from_secs(seconds)),
            None => failure,
        })
    }

    /// Looks up what became of it.
    pub(crate) async fn find(&self, call: &Call) -> Result<Resolution<Made>, Failure> {
        let url = format!("{}/{}", self.base, call.operation_id);
        let failed = |_| Failure::new(Class::Transient, "promise.lookup_failed");
        let _permit = call.admit().await?;
        let answer = self.http.get(url).timeout(call.timeout).send().await.map_err(failed)?;
        Ok(match answer.status() {
            StatusCode::OK => Resolution::Applied(answer.json().await.map_err(failed)?),
            StatusCode::NOT_FOUND => Resolution::NotApplied,
            StatusCode::CONFLICT => Resolution::Conflict("somebody else's".to_owned()),
            _ => Resolution::StillUnknown,
        })
    }
}
