//! Running: attempts, the claim loop, subscriptions, sweeps, and the workload that holds them together.

mod attempt;
mod claim_loop;
mod config;
mod ending;
mod pools;
mod shutdown;
mod start;
mod subscriber;
mod sweep;
mod watermark;
mod workload;

pub use config::WorkloadConfig;
pub use workload::{Exit, Workload};
