//! Where this workspace and its built programs are.

use std::path::{Path, PathBuf};
use std::{env, io};

/// The root of the workspace: the nearest folder above the current one, or else above this crate's source, that
/// holds `Cargo.toml` and `migrations`.
///
/// # Errors
/// Run outside a source tree.
pub fn workspace() -> io::Result<PathBuf> {
    let holds = |dir: &&Path| dir.join("Cargo.toml").is_file() && dir.join("migrations").is_dir();
    let here = env::current_dir()?;
    let source = Path::new(env!("CARGO_MANIFEST_DIR"));
    let found = here.ancestors().find(holds).or_else(|| source.ancestors().find(holds));
    found
        .map(Path::to_owned)
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "not inside Backline's source tree"))
}

/// The folder of this build's programs (`target/debug`), found from the running one, which respects
/// `CARGO_TARGET_DIR`, profiles and cross builds without asking.
///
/// # Errors
/// The running program's own place is unknown.
pub fn binary_dir() -> io::Result<PathBuf> {
    let running = env::current_exe()?;
    let dir = running.parent().unwrap_or(Path::new("."));
    // target/debug/x runs there itself; tests and examples run one folder below.
    let below = dir.ends_with("deps") || dir.ends_with("examples");
    Ok(if below { dir.parent().unwrap_or(dir) } else { dir }.to_owned())
}

/// A built program of this workspace, by its binary name.
///
/// # Errors
/// It has not been built.
pub fn binary(name: &str) -> io::Result<PathBuf> {
    let path = binary_dir()?.join(name);
    if path.is_file() {
        return Ok(path);
    }
    let text = format!("{name} is not built: run `cargo build --workspace --bins`");
    Err(io::Error::new(io::ErrorKind::NotFound, text))
}
