//! Running other programs, visibly: every step prints its command line, so that it can be repeated by hand.

use backline_dev_cluster::paths;
use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

/// `cargo` with `args` at the root of the workspace and a clean environment.
///
/// `cargo run` sets variables about xtask itself, and build scripts that watch them would rebuild their crates each
/// time a developer alternates between `cargo xtask` and plain `cargo`. Query macros read `.sqlx` unless a step says
/// otherwise, whatever the shell or a `.env` file says.
pub(crate) fn cargo<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> io::Result<Command> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(paths::workspace()?).env("SQLX_OFFLINE", "true");
    for (name, _) in std::env::vars_os() {
        let about_xtask = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_", "CARGO_PRIMARY_"];
        let text = name.to_string_lossy();
        if about_xtask.iter().any(|prefix| text.starts_with(prefix)) {
            command.env_remove(&name);
        }
    }
    Ok(command)
}

/// Runs `command` with its output shown.
///
/// # Errors
/// It cannot be started or fails.
pub(crate) fn run(name: &str, command: &mut Command) -> io::Result<()> {
    println!("== {name}: {}", line(command));
    let started = Instant::now();
    let status =
        command.status().map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}")))?;
    if !status.success() {
        return Err(io::Error::other(format!("{name} failed ({status}): {}", line(command))));
    }
    println!("== {name}: ok in {:.1?}", started.elapsed());
    Ok(())
}

/// True when `command` starts and succeeds; nothing of it is shown.
pub(crate) fn works(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// The target folder.
pub(crate) fn target() -> io::Result<PathBuf> {
    let root = paths::workspace()?;
    Ok(std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |dir| root.join(dir)))
}

fn line(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program());
    let words = std::iter::once(program.file_name().unwrap_or(program.as_os_str())).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}
