//! Tells a receiver what happened: calls signed by <https://www.standardwebhooks.com>, one id for all tries.

use backline_envelope::{DecodeError, Envelope, Payload};
use backline_failure::{Call, Failure, Mode, Resolution};
use backline_provider_http::{Method, Provider, Transport, Url};
use backline_runtime::{Command, Consumer, Evidence, Intent, KindSpec, Operation};
use backline_runtime::{ProviderBudget, Workload, WorkloadConfig};
use base64::{Engine, engine::general_purpose::STANDARD};
use clap::Parser;
use ring::hmac;
use std::time::{Duration, SystemTime};

const HOOK: Provider =
    Provider { name: "webhook", before: "webhook.call.before", after: "webhook.call.after", words: &[] };

struct Shipments;

impl Consumer for Shipments {
    const NAME: &'static str = "webhook";
    const EVENTS: &'static [&'static str] = &["OrderShipped"];

    fn intents(&self, event: &Envelope) -> Result<Vec<Intent>, DecodeError> {
        Ok(vec![Intent::run(event, Deliver::owed(event.id, &event.payload))?])
    }
}

struct Deliver {
    http: Transport,
    url: Url,
    secret: hmac::Key,
}

impl Command for Deliver {
    const KIND: &'static str = "webhook.deliver";
    const RECORDS: bool = false;
    const GUARDS: bool = false;
    type Input = Payload;
    type Output = u16;

    fn spec(&self) -> KindSpec {
        let spec = KindSpec::new(Mode::Event, HOOK.name).with_native_idempotency(Duration::from_hours(72));
        KindSpec { max_lookups: 1, ..spec } // it remembers ids for three days, and cannot be asked
    }

    async fn perform(&self, call: &Call, body: &Payload) -> Result<u16, Failure> {
        #[expect(clippy::disallowed_methods, reason = "the receiver compares it with a clock of its own")]
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let signature = hmac::sign(&self.secret, format!("{}.{now}.{}", call.key, body.as_str()).as_bytes());
        let request = self.http.request(call, Method::POST, self.url.clone()).header("webhook-id", &call.key);
        let request = request.header("content-type", "application/json").header("webhook-timestamp", now);
        let request = request.header("webhook-signature", format!("v1,{}", STANDARD.encode(signature)));
        let answer = self.http.write(call, request, body.as_str().to_owned()).await?;
        let failure = match answer.status {
            status @ 200..=299 => return Ok(status),
            401 | 403 => Failure::blocked("webhook.unauthorized"), // no event's fault: all of them wait
            429 => Failure::throttled("webhook.too_many_requests"),
            status @ (400..=407 | 409..=499) => Failure::rejected(format!("webhook.status_{status}")),
            status => Failure::unknown(format!("webhook.status_{status}")), // taken or not: the same id again
        };
        Err(Failure { retry_after: answer.retry_after(), ..failure })
    }

    async fn resolve(
        &self,
        _: &Call,
        _: &Operation,
        _: &Payload,
        _: &[Evidence],
    ) -> Result<Resolution<u16>, Failure> {
        Ok(Resolution::StillUnknown)
    }
}

#[derive(Parser)]
struct Settings {
    #[command(flatten)]
    workload: WorkloadConfig,
    /// Where events go.
    #[arg(long, env = "WEBHOOK_URL", hide_env_values = true)]
    webhook_url: Url,
    /// What both sides sign with: `whsec_` and base64 of at least 24 bytes.
    #[arg(long, env = "WEBHOOK_SECRET", hide_env_values = true)]
    webhook_secret: String,
}

#[tokio::main]
async fn main() -> Result<std::process::ExitCode, Box<dyn std::error::Error>> {
    let Settings { workload, webhook_url: url, webhook_secret } = Settings::parse();
    let budget = ProviderBudget::per_second(25.0, 20);
    let workload = Workload::process("webhook", workload)?.budget(HOOK.name, budget);
    let secret = STANDARD.decode(webhook_secret.trim_start_matches("whsec_")).unwrap_or_default();
    let secret = Some(secret).filter(|it| it.len() >= 24).ok_or("webhook_secret: not base64 of 24 bytes")?;
    let secret = hmac::Key::new(hmac::HMAC_SHA256, &secret);
    let http = Transport::new(&HOOK, "backline-webhook", url.clone(), Duration::from_secs(5))?;
    Ok(workload.command(Deliver { http, url, secret }).consumer(Shipments).run().await?.code())
}
