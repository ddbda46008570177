//! The tests, by nextest where it is installed, else by cargo's own runner. Never retried.

use crate::database::Database;
use crate::step;
use std::io;

/// Settings of a developer's shell that must not lead a test to a real service.
pub(crate) const FOREIGN: [&str; 4] =
    ["PUBSUB_EMULATOR_HOST", "GOOGLE_APPLICATION_CREDENTIALS", "STRIPE_API_KEY", "BACKLINE_CRASH_PLAN"];

/// Runs the examples in the documentation first, then all tests: the runner's closing line comes last.
///
/// # Errors
/// A test failed.
pub(crate) fn run(database: &Database) -> io::Result<()> {
    let mut examples = step::cargo(["test", "--workspace", "--doc"])?;
    step::run("examples in the documentation", prepared(&mut examples, database))?;
    let nextest = step::works(&mut step::cargo(["nextest", "--version"])?);
    let mut tests = if nextest {
        step::cargo(["nextest", "run", "--workspace", "--all-targets"])?
    } else {
        // Two at a time, as in .config/nextest.toml.
        step::cargo(["test", "--workspace", "--all-targets", "--no-fail-fast", "--", "--test-threads=2"])?
    };
    step::run("tests", prepared(&mut tests, database))
}

fn prepared<'a>(
    command: &'a mut std::process::Command,
    database: &Database,
) -> &'a mut std::process::Command {
    for name in FOREIGN {
        command.env_remove(name);
    }
    database.lend(command).env("BACKLINE_TEST_PG", database.server_url())
}
