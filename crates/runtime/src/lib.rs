//! The runtime of workers: operations, claims, phases, failure decisions, flow control.
//!
//! A worker's `main` builds clients, registers handlers and consumers with a [`Workload`] and runs it. The runtime
//! owns every transaction and names no provider and no domain event.

mod author;
mod claim;
mod error;
mod finish;
mod flow;
mod observe;
mod run;
mod seeded;
pub mod transition;

pub use backline_broker::{DeadLetter, SubscriptionSpec, Topology};

pub use author::{
    Command, Conclusion, Consumer, Evidence, Guard, Intent, KindSpec, Operation, Owed, Read, Reconcile,
    Record, Serial, Step,
};
pub use error::Error;
pub use flow::{Capacity, ProviderBudget, refuse_zero};
pub use observe::{Telemetry, TelemetryError, init_telemetry, install_metrics};
pub use run::{Eager, Exit, Status, Workload, WorkloadConfig};
