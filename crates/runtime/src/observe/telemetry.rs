//! Logs and traces of one process.

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use opentelemetry::propagation::{Extractor, Injector, TextMapPropagator};
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use std::collections::HashMap;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

/// Telemetry could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The log filter does not parse.
    #[error("setting RUST_LOG: {0}")]
    Filter(#[from] tracing_subscriber::filter::ParseError),
    /// The exporter's endpoint is unusable.
    #[error("setting OTEL_EXPORTER_OTLP_ENDPOINT: {0}")]
    Exporter(String),
    /// A subscriber was installed before.
    #[error("telemetry is already set up")]
    Twice,
    /// A recorder was installed before.
    #[error("metrics are already set up: {0}")]
    Metrics(String),
}

/// Keeps the exporter; dropping it flushes.
#[derive(Debug)]
pub struct Telemetry {
    provider: Option<SdkTracerProvider>,
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        if let Some(provider) = &self.provider {
            // Spans are optional telemetry (obligation B8): their loss never fails the process.
            let _ = provider.shutdown();
        }
    }
}

/// Structured logs on standard error, filtered by `filter` (the syntax of `RUST_LOG`), and spans to `otlp_endpoint`
/// (OTLP over gRPC) where one is given.
///
/// # Errors
/// [`TelemetryError`] naming the setting.
pub fn init_telemetry(
    service: &str,
    filter: &str,
    otlp_endpoint: Option<&str>,
) -> Result<Telemetry, TelemetryError> {
    let logs = tracing_subscriber::fmt::layer()
        .json()
        .flatten_event(true)
        .with_current_span(true)
        .with_span_list(false)
        .with_writer(std::io::stderr)
        .with_filter(EnvFilter::try_new(filter)?);
    let provider = match otlp_endpoint {
        None => None,
        Some(endpoint) => {
            let exporter = SpanExporter::builder()
                .with_tonic()
                .with_endpoint(endpoint)
                .build()
                .map_err(|error| TelemetryError::Exporter(error.to_string()))?;
            let resource = Resource::builder().with_service_name(service.to_owned()).build();
            Some(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build())
        }
    };
    let spans = provider.as_ref().map(|provider| {
        tracing_opentelemetry::layer()
            .with_tracer(provider.tracer("backline"))
            .with_filter(tracing_subscriber::filter::LevelFilter::INFO)
    });
    tracing_subscriber::registry().with(logs).with(spans).try_init().map_err(|_| TelemetryError::Twice)?;
    Ok(Telemetry { provider })
}

/// Installs the process's Prometheus recorder; its text is served at `/metrics`.
///
/// # Errors
/// [`TelemetryError::Metrics`] when another recorder is installed.
pub fn install_metrics() -> Result<PrometheusHandle, TelemetryError> {
    PrometheusBuilder::new().install_recorder().map_err(|error| TelemetryError::Metrics(error.to_string()))
}

struct Carrier(HashMap<String, String>);

impl Extractor for Carrier {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }
    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(String::as_str).collect()
    }
}

impl Injector for Carrier {
    fn set(&mut self, key: &str, value: String) {
        self.0.insert(key.to_owned(), value);
    }
}

/// Makes `span` a child of the stored trace context.
pub(crate) fn adopt_parent(span: &Span, traceparent: Option<&str>) {
    let Some(traceparent) = traceparent else { return };
    let carrier = Carrier(HashMap::from([("traceparent".to_owned(), traceparent.to_owned())]));
    // Without an exporter the span has no context to join; the stored one still travels to the provider.
    let _ = span.set_parent(TraceContextPropagator::new().extract(&carrier));
}

/// W3C trace context of the current span, where one is recorded.
pub(crate) fn current_traceparent() -> Option<String> {
    let mut carrier = Carrier(HashMap::new());
    TraceContextPropagator::new().inject_context(&Span::current().context(), &mut carrier);
    carrier.0.remove("traceparent")
}
