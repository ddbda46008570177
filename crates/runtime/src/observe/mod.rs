//! Observability: spans across the broker, metrics that agree with SQL, liveness and readiness.

mod health;
mod progress;
pub(crate) mod spans;
mod views;

pub use backline_telemetry::{Telemetry, TelemetryError, init_telemetry, install_metrics};
pub(crate) use health::{Health, Loops, serve};
pub(crate) use progress::Progress;
