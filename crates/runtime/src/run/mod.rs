//! Running: attempts, the claim loop, subscriptions, sweeps, and the workload that holds them together.

mod attempt;
mod call;
mod claim_loop;
mod config;
mod eager;
mod ending;
mod pools;
mod process;
mod shutdown;
mod start;
mod subscriber;
mod sweep;
mod watch;
mod watermark;
mod workload;

pub use config::WorkloadConfig;
pub use eager::{Eager, Status};
pub use workload::{Exit, Workload};
