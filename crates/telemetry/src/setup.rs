use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use std::sync::OnceLock;
use tracing::{Level, Metadata};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

/// Set where spans are exported.
static TRACER: OnceLock<SdkTracer> = OnceLock::new();

pub(crate) fn tracer() -> Option<&'static SdkTracer> {
    TRACER.get()
}

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
/// (OTLP over gRPC) where one is given. Sampling and batching are OpenTelemetry's own settings (`OTEL_TRACES_SAMPLER`,
/// `OTEL_BSP_…`).
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
    // An empty setting is how a container's environment says "unset".
    let provider = match otlp_endpoint.filter(|endpoint| !endpoint.is_empty()) {
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
    let tracer = provider.as_ref().map(|provider| provider.tracer("backline"));
    let spans = tracer.clone().map(|tracer| {
        tracing_opentelemetry::layer()
            .with_tracer(tracer)
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_filter(filter_fn(of_a_handler))
    });
    tracing_subscriber::registry().with(logs).with(spans).try_init().map_err(|_| TelemetryError::Twice)?;
    if let Some(tracer) = tracer {
        // Nobody was here before: there is one subscriber in a process.
        let _ = TRACER.set(tracer);
    }
    Ok(Telemetry { provider })
}

/// What a handler opens with `tracing` hangs below its attempt. The runtime's `tracing` spans are there for log lines.
fn of_a_handler(of: &Metadata<'_>) -> bool {
    *of.level() <= Level::INFO && !(of.is_span() && of.target().starts_with("backline_runtime"))
}

/// Installs the process's Prometheus recorder; its text is served at `/metrics`.
///
/// # Errors
/// [`TelemetryError::Metrics`] when another recorder is installed.
pub fn install_metrics() -> Result<PrometheusHandle, TelemetryError> {
    PrometheusBuilder::new().install_recorder().map_err(|error| TelemetryError::Metrics(error.to_string()))
}
