//! Building and running the product itself.

use crate::database::Database;
use crate::{postgres, step};
use backline_dev_cluster::paths;
use backline_dev_cluster::pg::{Options, state_dir};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Builds everything and becomes `backline demo`, so that Ctrl-C reaches it alone.
///
/// # Errors
/// PostgreSQL is missing, or the build fails.
pub(crate) fn demo(args: &[String]) -> io::Result<()> {
    let binaries = postgres::ensure()?;
    step::run("programs", &mut step::cargo(["build", "--workspace", "--bins"])?)?;
    let mut command = Command::new(step::target()?.join("debug/backline"));
    command.arg("demo").args(args).env("PG_BIN", binaries.dir());
    Err(command.exec())
}

/// Measures a release build on a private PostgreSQL that waits for the disk at each commit, as a real one does.
///
/// # Errors
/// PostgreSQL is missing, the build or the measurement fails.
pub(crate) fn bench(args: &[String]) -> io::Result<()> {
    postgres::ensure()?;
    step::run("programs", &mut step::cargo(["build", "--workspace", "--bins", "--release"])?)?;
    // In the tree and not in the temporary directory, which is often memory, where waiting for the disk costs nothing.
    let dir = state_dir(&paths::workspace()?, &format!("bench-{}", std::process::id()))?;
    // Sizes as in the measurements of other queues that the report prints beside ours; durability stays the default.
    let options = Options::kept_in(dir)
        .removed_at_end()
        .setting("max_connections", "300")
        .setting("shared_buffers", "1GB")
        .setting("max_wal_size", "4GB");
    let database = Database::with(options)?;
    let mut command = Command::new(step::target()?.join("release/backline"));
    step::run("bench", database.lend(&mut command).arg("bench").args(args))
}
