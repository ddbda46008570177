//! Logs, metrics and spans of one process: set up once by `main`, used by relay, runtime and providers' transports.
//!
//! Our own spans are started directly and not through `tracing`: whether one is recorded is known from the stored trace
//! context before anything is built for it, so that a span nobody exports costs a comparison. `tracing` spans are the
//! context of log lines, and what handlers open themselves.

mod setup;
mod span;
mod trace_context;

pub use opentelemetry::KeyValue;
pub use opentelemetry::context::FutureExt;
pub use opentelemetry::trace::{SpanBuilder, SpanKind};
pub use setup::{Telemetry, TelemetryError, init_telemetry, install_metrics};
pub use span::{Recording, child, child_or_root, now, within};
