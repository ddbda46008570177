//! The operator's command, run as a person would run it.

use crate::Stack;
use anyhow::Context;
use backline_dev_cluster::paths;
use std::process::Command;

/// What a decision that needs two people says of them.
pub const TWO_PEOPLE: [&str; 6] = ["--reason", "drill", "--actor", "first", "--approved-by", "second"];

/// How the command ended.
#[derive(Debug)]
pub struct Answer {
    /// Its exit code; `None` after a signal.
    pub code: Option<i32>,
    /// What it printed, without its errors.
    pub printed: String,
    /// What it printed about errors.
    pub errors: String,
}

impl Answer {
    /// Everything that a person at a terminal sees.
    #[must_use]
    pub fn seen(&self) -> String {
        format!("{}{}", self.printed, self.errors)
    }
}

/// Runs `backline` with these arguments on the database of this URL, and with more of an environment than it has. No
/// broker is known to it unless that environment names one.
///
/// # Errors
/// The program is not built.
pub fn backline(url: &str, env: &[(&str, String)], args: &[&str]) -> anyhow::Result<Answer> {
    let done = Command::new(paths::binary("backline")?)
        .args(args)
        .env("DATABASE_URL", url)
        .env_remove("PUBSUB_EMULATOR_HOST")
        .envs(env.iter().map(|(name, value)| (*name, value)))
        .output()
        .context("starting the operator's command")?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(Answer { code: done.status.code(), printed: text(done.stdout), errors: text(done.stderr) })
}

/// As [`backline`], for what must succeed; what it printed.
///
/// # Errors
/// As [`backline`], and the command's own words when it does not end with 0.
pub fn must_backline(url: &str, env: &[(&str, String)], args: &[&str]) -> anyhow::Result<String> {
    let answer = backline(url, env, args)?;
    anyhow::ensure!(answer.code == Some(0), "{args:?}: {}", answer.errors);
    Ok(answer.printed)
}

impl Stack {
    /// As [`must_backline`], on the database of this stack.
    ///
    /// # Errors
    /// As [`must_backline`].
    pub fn operator(&self, args: &[&str]) -> anyhow::Result<String> {
        must_backline(&self.database_url(), &[], args)
    }
}
