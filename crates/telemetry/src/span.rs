use crate::setup::tracer;
use crate::trace_context::{format, parse, sampled};
use opentelemetry::trace::{SpanBuilder, Status, TraceContextExt};
use opentelemetry::{Context, KeyValue, Value};
use opentelemetry_sdk::trace::SdkTracer;
use std::time::SystemTime;

/// A span that has begun; it ends when this is dropped.
#[derive(Debug)]
pub struct Recording(Context);

impl Recording {
    fn start(tracer: &SdkTracer, parent: &Context, span: SpanBuilder) -> Self {
        Self(parent.with_span(span.start_with_context(tracer, parent)))
    }

    /// W3C trace context of what is done inside this span.
    #[must_use]
    pub fn traceparent(&self) -> String {
        format(self.0.span().span_context())
    }

    /// Adds an attribute. Never an input, a payload or a credential: spans leave for places that may keep none of them.
    pub fn set(&self, name: &'static str, value: impl Into<Value>) {
        self.0.span().set_attribute(KeyValue::new(name, value));
    }

    /// Marks the span as failed; `kind` is `error.type`: a stable code with few values.
    pub fn failed(&self, kind: impl Into<String>) {
        self.set("error.type", kind.into());
        self.0.span().set_status(Status::error(""));
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.0.span().end();
    }
}

/// The beginning of a span that is started later, for [`SpanBuilder::with_start_time`].
#[must_use]
#[expect(clippy::disallowed_methods, reason = "shown to people; nothing is decided by it")]
pub fn now() -> SystemTime {
    SystemTime::now()
}

/// Starts a span under a stored trace context. `None` when nothing is exported or the producer does not sample this
/// trace; `span` is not even asked then.
#[must_use]
pub fn child(parent: Option<&str>, span: impl FnOnce() -> SpanBuilder) -> Option<Recording> {
    let tracer = tracer()?;
    let parent = parse(parent.filter(|parent| sampled(parent))?)?;
    Some(Recording::start(tracer, &parent, span()))
}

/// As [`child`], for work that nobody's trace asked for: it begins a trace of its own, sampled as this process is set.
#[must_use]
pub fn child_or_root(parent: Option<&str>, span: impl FnOnce() -> SpanBuilder) -> Option<Recording> {
    let tracer = tracer()?;
    match parent {
        Some(_) => child(parent, span),
        None => Some(Recording::start(tracer, &Context::new(), span())),
    }
}

/// The context for what runs inside `recording`; without one, what a handler opens belongs to the stored trace, and is
/// recorded as little as its parent is.
#[must_use]
pub fn within(recording: Option<&Recording>, parent: Option<&str>) -> Context {
    match (recording, tracer()) {
        (Some(recording), _) => recording.0.clone(),
        (None, Some(_)) => parent.and_then(parse).unwrap_or_default(),
        (None, None) => Context::new(),
    }
}
