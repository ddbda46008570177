//! One trace from the producer's request to the provider's, and nothing secret in it.
//!
//! Predicate: with spans exported, the producer's trace context is the broker message's; its publication and its
//! acceptance are spans below it, attempts are spans below the acceptance, and every request to the provider names the
//! span that it is, below its attempt. Telemetry that cannot be delivered, or that the producer did not sample, changes
//! nothing but what is recorded.
//!
//! The races: an answer that is lost, so that one operation has several attempts, and a collector that is not there.

use anyhow::Context;
use backline_promises::check::{self, CANARY, Expected};
use backline_promises::{
    API_KEY, Collector, Exported, PAYMENTS, RELAY, SANDBOX, Stack, StackBuilder, eventually,
};
use serde_json::json;
use uuid::Uuid;

/// Trace and span of the producer's own request, as in the examples of W3C's Trace Context.
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const REQUEST: &str = "b7ad6b7169203331";

/// Exports to `endpoint` from every process, without waiting for full batches.
fn exporting(endpoint: &str) -> StackBuilder {
    let mut plan = Stack::builder().worker(PAYMENTS);
    for program in [RELAY, PAYMENTS] {
        plan = plan.env(program, "OTEL_EXPORTER_OTLP_ENDPOINT", endpoint);
        plan = plan.env(program, "OTEL_BSP_SCHEDULE_DELAY", "50");
    }
    plan
}

/// A payment whose payload carries the canary, requested under a trace context.
async fn pay(stack: &Stack, traceparent: Option<&str>) -> anyhow::Result<Uuid> {
    let instruction =
        json!({"type": "transfer", "amount": {"minor": 1250, "currency": "eur"}, "destination": "acct_x"});
    let payload = json!({"payment_id": "p1", "authorization": CANARY, "instruction": instruction});
    let organization = Uuid::now_v7();
    let sql =
        "select backline.emit_event('PaymentAuthorized', $1, $1, 'payment', 'p1', $2, traceparent => $3)";
    let id = sqlx::query_scalar(sql).bind(organization).bind(payload).bind(traceparent);
    Ok(id.fetch_one(stack.pool()).await?)
}

async fn is_settled(stack: &Stack) -> anyhow::Result<bool> {
    let sql = "select count(*) from backline.operation_history where kind = 'stripe.settlement' and outcome = 'succeeded'";
    Ok(stack.count(sql).await? == 1)
}

/// Trace contexts of the provider's requests, in the order of the journal.
fn presented(stack: &Stack) -> anyhow::Result<Vec<String>> {
    let calls = stack.journal()?.into_iter().filter(|line| line["method"] != "CONTROL");
    Ok(calls.map(|call| call["traceparent"].as_str().unwrap_or_default().to_owned()).collect())
}

fn attempts(spans: &[Exported]) -> impl Iterator<Item = &Exported> {
    spans.iter().filter(|span| span.name == "attempt")
}

fn parent<'a>(spans: &'a [Exported], child: &Exported) -> Option<&'a Exported> {
    spans.iter().find(|span| (&span.trace, &span.span) == (&child.trace, &child.parent))
}

/// The spans of one request to the provider, from its own outwards: request, attempt, acceptance.
fn way<'a>(spans: &'a [Exported], traceparent: &str) -> Option<[&'a Exported; 3]> {
    let request = spans.iter().find(|span| span.traceparent() == traceparent)?;
    let attempt = parent(spans, request)?;
    Some([request, attempt, parent(spans, attempt)?])
}

fn has(span: &Exported, attributes: &[(&str, &str)]) {
    for (name, value) in attributes {
        assert_eq!(span.get(name), *value, "{name} of {span:?}");
    }
}

#[tokio::test]
async fn a_payment_is_one_trace_from_the_producer_to_the_provider() -> anyhow::Result<()> {
    let collector = Collector::start()?;
    let mut stack = exporting(&collector.endpoint()).start().await?;
    let lost = json!([{"match": {"method": "POST"}, "per": "operation", "when": {"first": 1}, "fault": {"kind": "drop_reply"}}]);
    stack.add_faults(SANDBOX, &lost)?;
    let producer = format!("00-{TRACE}-{REQUEST}-01");
    let event = pay(&stack, Some(&producer)).await?;
    eventually("the settlement", async || is_settled(&stack).await).await?;

    // The broker carries the producer's context unchanged, where CloudEvents and where Google's clients look for it,
    // and so do the facts that follow.
    let published = stack.published()?;
    let message = published.iter().find(|line| line["attributes"]["ce-id"] == event.to_string());
    let attributes = message.map(|line| line["attributes"].clone()).unwrap_or_default();
    for name in ["ce-traceparent", "googclient_traceparent"] {
        assert_eq!(attributes[name], producer.as_str(), "{attributes}");
    }
    for line in &published {
        let context = line["attributes"]["ce-traceparent"].as_str().unwrap_or_default();
        assert!(context.contains(TRACE), "{line}");
    }

    // Each request to the provider is a span, and so is everything between it and the producer's own.
    let calls = presented(&stack)?;
    assert!(calls.len() >= 3, "two submissions and a look at the settlement: {calls:?}");
    let mut spans = Vec::new();
    let event = event.to_string();
    let sent = |span: &&Exported| span.name == "send domain-events" && span.get("backline.event.id") == event;
    eventually("the spans of every request", async || {
        spans = collector.spans();
        Ok(calls.iter().all(|call| way(&spans, call).is_some()) && spans.iter().any(|span| sent(&span)))
    })
    .await?;
    let send = spans.iter().find(sent).context("it was waited for")?;
    assert_eq!((send.service.as_str(), send.kind), ("backline-relay", "PRODUCER"), "{send:?}");
    assert_eq!((send.trace.as_str(), send.parent.as_str()), (TRACE, REQUEST), "{send:?}");
    let destination = ("messaging.destination.name", "domain-events");
    has(send, &[("messaging.system", "gcp_pubsub"), ("messaging.operation.type", "send"), destination]);
    assert!(!send.failed && !send.get("messaging.message.id").is_empty(), "{send:?}");

    let mut transfers = Vec::new();
    for call in &calls {
        let [request, attempt, process] = way(&spans, call).context("they were waited for")?;
        assert_eq!((process.name.as_str(), process.kind), ("process domain-events.payments", "CONSUMER"));
        assert_eq!((process.trace.as_str(), process.parent.as_str()), (TRACE, REQUEST), "{process:?}");
        has(process, &[("messaging.operation.type", "process"), ("backline.event.id", &event)]);
        assert_eq!(process.get("messaging.message.id"), send.get("messaging.message.id"));
        assert_eq!((attempt.name.as_str(), attempt.kind), ("attempt", "INTERNAL"), "{attempt:?}");
        has(attempt, &[("backline.correlation.id", &event), ("backline.operation.submission", "1")]);
        assert_eq!(request.kind, "CLIENT");
        has(request, &[("server.address", "127.0.0.1")]);
        assert_eq!(request.failed, attempt.failed, "{request:?} {attempt:?}");
        if attempt.get("backline.kind") == "stripe.transfer" {
            transfers.push((attempt.get("backline.operation.attempt"), request));
        }
    }
    // The lost answer made a second attempt.
    let [("1", lost), ("2", answered)] = transfers[..] else { anyhow::bail!("{transfers:?}") };
    assert!(lost.failed && !answered.failed);
    has(lost, &[("error.type", "stripe.connection_lost"), ("http.response.status_code", "")]);
    has(answered, &[("error.type", ""), ("http.response.status_code", "200")]);
    for request in [lost, answered] {
        assert_eq!(request.name, "POST /v1/transfers");
        has(request, &[("http.request.method", "POST"), ("url.template", "/v1/transfers")]);
    }
    let look = spans.iter().find(|span| span.kind == "CLIENT" && span.name.starts_with("GET"));
    assert_eq!(look.map(|span| span.name.as_str()), Some("GET /v1/transfers/{id}"));
    // Nothing of payload or credentials, in attributes, events or resources.
    for span in &spans {
        assert!(!span.raw.contains(CANARY) && !span.raw.contains(API_KEY), "{span:?}");
    }
    check::settled(&stack, &Expected::recovered()).await
}

#[tokio::test]
async fn what_the_producer_did_not_sample_is_passed_on_and_not_recorded() -> anyhow::Result<()> {
    let collector = Collector::start()?;
    let stack = exporting(&collector.endpoint()).start().await?;
    pay(&stack, Some(&format!("00-{TRACE}-{REQUEST}-00"))).await?;
    eventually("the settlement", async || is_settled(&stack).await).await?;
    for call in presented(&stack)? {
        assert!(call.starts_with(&format!("00-{TRACE}-")) && call.ends_with("-00"), "{call}");
    }
    // A payment that is sampled shows that spans arrive: the others would be here before it.
    pay(&stack, Some(&format!("00-{}-{REQUEST}-01", "1".repeat(32)))).await?;
    eventually("a sampled span", async || Ok(attempts(&collector.spans()).next().is_some())).await?;
    assert!(collector.spans().iter().all(|span| span.trace != TRACE));
    check::settled(&stack, &Expected::default()).await
}

#[tokio::test]
async fn without_a_collector_payments_settle_and_the_context_still_arrives() -> anyhow::Result<()> {
    // A port that was free a moment ago: nobody listens.
    let gone = format!("http://127.0.0.1:{}", backline_dev_cluster::process::free_port()?);
    let stack = exporting(&gone).start().await?;
    pay(&stack, Some(&format!("00-{TRACE}-{REQUEST}-01"))).await?;
    eventually("the settlement", async || is_settled(&stack).await).await?;
    assert!(presented(&stack)?.iter().all(|call| call.starts_with(&format!("00-{TRACE}-"))));
    check::settled(&stack, &Expected::default()).await
}

#[tokio::test]
async fn without_an_exporter_the_producers_own_context_reaches_the_provider() -> anyhow::Result<()> {
    let stack = Stack::builder().worker(PAYMENTS).start().await?;
    let producer = format!("00-{TRACE}-{REQUEST}-01");
    pay(&stack, Some(&producer)).await?;
    eventually("the settlement", async || is_settled(&stack).await).await?;
    assert!(presented(&stack)?.iter().all(|call| *call == producer));
    check::settled(&stack, &Expected::default()).await
}
