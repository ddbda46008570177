//! A receiver of OpenTelemetry spans (OTLP over gRPC): what an operator's collector would get.

use anyhow::Context;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

/// One span as exported, its identifiers in hex.
#[derive(Debug, Clone)]
pub struct Exported {
    /// `service.name` of the process that exported it.
    pub service: String,
    /// Span name.
    pub name: String,
    /// `INTERNAL`, `SERVER`, `CLIENT`, `PRODUCER` or `CONSUMER`.
    pub kind: &'static str,
    /// 32 hex digits.
    pub trace: String,
    /// 16 hex digits.
    pub span: String,
    /// 16 hex digits, empty for a root.
    pub parent: String,
    /// Traces and spans that it is linked to.
    pub links: Vec<(String, String)>,
    /// Its status is an error.
    pub failed: bool,
    /// Attributes, values as text.
    pub attributes: BTreeMap<String, String>,
    /// Everything that was exported with it as text, events and resource included: for what must not be there.
    pub raw: String,
}

impl Exported {
    fn new(service: &str, resource: &str, span: &Span) -> Exported {
        let kind = SpanKind::try_from(span.kind).unwrap_or_default().as_str_name();
        Exported {
            service: service.to_owned(),
            name: span.name.clone(),
            kind: kind.strip_prefix("SPAN_KIND_").unwrap_or(kind),
            trace: hex::encode(&span.trace_id),
            span: hex::encode(&span.span_id),
            parent: hex::encode(&span.parent_span_id),
            links: span.links.iter().map(|l| (hex::encode(&l.trace_id), hex::encode(&l.span_id))).collect(),
            failed: span.status.as_ref().is_some_and(|status| status.code() == StatusCode::Error),
            attributes: texts(&span.attributes),
            raw: format!("{resource} {span:?}"),
        }
    }

    /// One attribute as text, empty where it is not set.
    #[must_use]
    pub fn get(&self, attribute: &str) -> &str {
        self.attributes.get(attribute).map_or("", String::as_str)
    }

    /// The W3C trace context that a request made inside this span carries; sampled, since it was exported.
    #[must_use]
    pub fn traceparent(&self) -> String {
        format!("00-{}-{}-01", self.trace, self.span)
    }
}

/// A running receiver.
pub struct Collector {
    address: SocketAddr,
    received: Received,
}

#[derive(Clone, Default)]
struct Received(Arc<Mutex<Vec<Exported>>>);

impl Collector {
    /// Starts on a thread of its own.
    ///
    /// # Errors
    /// No free port.
    pub fn start() -> anyhow::Result<Collector> {
        let received = Received::default();
        let (sender, receiver) = mpsc::channel();
        let state = received.clone();
        // A runtime of its own: the harness blocks the test's while processes start.
        std::thread::spawn(move || serve(state, &sender));
        Ok(Collector { address: receiver.recv().context("the collector did not start")??, received })
    }

    /// For `OTEL_EXPORTER_OTLP_ENDPOINT`.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Everything received so far.
    #[must_use]
    pub fn spans(&self) -> Vec<Exported> {
        self.received.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[tonic::async_trait]
impl TraceService for Received {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        for from in request.into_inner().resource_spans {
            let resource = from.resource.unwrap_or_default();
            let service = texts(&resource.attributes).remove("service.name").unwrap_or_default();
            let resource = format!("{resource:?}");
            let spans = from.scope_spans.iter().flat_map(|scope| &scope.spans);
            let spans: Vec<_> = spans.map(|span| Exported::new(&service, &resource, span)).collect();
            self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(spans);
        }
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

fn serve(state: Received, started: &mpsc::Sender<std::io::Result<SocketAddr>>) {
    let run = || -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
            let _ = started.send(listener.local_addr());
            let server = tonic::transport::Server::builder().add_service(TraceServiceServer::new(state));
            Ok(server.serve_with_incoming(TcpListenerStream::new(listener)).await?)
        })
    };
    if let Err(error) = run() {
        let _ = started.send(Err(std::io::Error::other(error)));
    }
}

fn texts(attributes: &[KeyValue]) -> BTreeMap<String, String> {
    attributes.iter().map(|pair| (pair.key.clone(), text(pair.value.as_ref()))).collect()
}

fn text(value: Option<&AnyValue>) -> String {
    match value.and_then(|value| value.value.as_ref()) {
        Some(Any::StringValue(text)) => text.clone(),
        Some(Any::IntValue(number)) => number.to_string(),
        Some(Any::BoolValue(flag)) => flag.to_string(),
        Some(Any::DoubleValue(number)) => number.to_string(),
        Some(other) => format!("{other:?}"),
        None => String::new(),
    }
}
