//! Observability: spans across the broker, metrics that agree with SQL, liveness and readiness.

pub(crate) mod health;
mod progress;
mod telemetry;
mod views;

pub(crate) use health::serve;
pub(crate) use progress::Progress;
pub use telemetry::{Telemetry, TelemetryError, init_telemetry, install_metrics};
pub(crate) use telemetry::{adopt_parent, current_traceparent};
