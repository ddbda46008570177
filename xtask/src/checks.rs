//! `cargo xtask test`: the checks, cheap ones first, each compilation once.
//!
//! clippy, doc and build share the dependencies' artifacts of one profile. clippy is also the run that proves the
//! statements against a real schema and writes the query data that `.sqlx` is compared with; everything after it
//! compiles from `.sqlx` alone, as a user without a database does.

use crate::{database, deny, query_data, runner, step};
use std::io;

/// Runs every check and stops at the first that fails.
///
/// # Errors
/// The failed check.
pub(crate) fn run() -> io::Result<()> {
    let started = std::time::Instant::now();
    step::run("format", &mut step::cargo(["fmt", "--all", "--check"])?)?;
    let skipped = deny::check()?;
    let database = database::Database::start()?;
    query_data::lint_and_compare(&database)?;
    let mut doc = step::cargo(["doc", "--workspace", "--no-deps", "--document-private-items"])?;
    step::run("documentation", doc.env("RUSTDOCFLAGS", "-D warnings"))?;
    // Tests start the programs as processes, which building the tests alone would not bring up to date.
    step::run("programs", &mut step::cargo(["build", "--workspace", "--bins"])?)?;
    runner::run(&database)?;
    println!("== all checks passed in {:.0?}", started.elapsed());
    if let Some(reason) = skipped {
        println!("== skipped: cargo deny ({reason})");
    }
    Ok(())
}
