//! Situations and what must be true of them. None knows of a defect: each returns an error exactly when a promise is
//! broken, whatever broke it.

mod conversations;
mod doubt;
mod operator;
mod relay;
mod worker;

pub use conversations::{deleted_in_doubt, joined_while_looking};
pub use doubt::{cancelled_in_doubt, cancelled_while_running, panicking_after_the_reply, reply_lost};
pub use operator::{asked_twice, replayed};
pub use relay::{dies_before_publishing, late_commit, missing_topic};
pub use worker::{
    asked_again_meanwhile, clock_step, database_blocked, dead_at_the_last_attempt, late_request, two_zombies,
};

use crate::sweep::{self, Bench, Role, Visit};
use crate::{Action, Site};
use std::time::Duration;

/// Environment of every relay and worker of a scenario.
pub type Env<'a> = &'a [(&'a str, String)];

/// How long a scenario waits for rest when a defect may keep it from coming: several times what it takes without one.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// The process dies at its first arrival at a boundary.
///
/// # Errors
/// A promise is broken.
pub async fn dies_at(env: Env<'_>, role: Role, name: &str) -> anyhow::Result<()> {
    let mut bench = open(env).await?;
    let site = Site { name: name.to_owned(), nth: 1 };
    Visit { role, site, action: Action::Kill, change: None }.run(&mut bench).await
}

async fn open(env: Env<'_>) -> anyhow::Result<Bench> {
    let mut bench = sweep::open(env).await?;
    bench.be_patient_for(PATIENCE);
    Ok(bench)
}

/// A bench whose worker is not running, so that the scenario can start it with a fault.
async fn without_worker(env: Env<'_>) -> anyhow::Result<Bench> {
    let mut bench = open(env).await?;
    bench.member("worker")?.kill9()?;
    bench.forget_slices().await?;
    bench.stack().clear_faults(crate::SANDBOX)?;
    Ok(bench)
}
