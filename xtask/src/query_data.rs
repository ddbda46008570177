//! `.sqlx`: what PostgreSQL says about each statement, committed so that a build needs no database.
//!
//! sqlx's macros write this data when `SQLX_OFFLINE_DIR` is set and they are compiled against a live database. They
//! do not tell cargo that they read the environment, so the crates that use them must be compiled anew for it.

use crate::database::Database;
use crate::step;
use backline_dev_cluster::paths;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;
use std::{fs, io};

/// `cargo xtask sqlx`: replaces `.sqlx` by what the current statements and migrations give.
///
/// # Errors
/// PostgreSQL is missing, or the workspace does not compile.
pub(crate) fn rewrite() -> io::Result<()> {
    let database = Database::start()?;
    let fresh = write_with("query data", &database, step::cargo(["check", "--workspace", "--all-targets"])?)?;
    let committed = committed_dir()?;
    let _ = fs::remove_dir_all(&committed);
    fs::create_dir_all(&committed)?;
    let data = read(&fresh)?;
    for (name, text) in &data {
        fs::write(committed.join(name), text)?;
    }
    println!("== {} statements described in {}", data.len(), committed.display());
    Ok(())
}

/// Lints the whole workspace against the live schema, and fails when `.sqlx` is not what that compilation wrote.
///
/// # Errors
/// A lint, a statement that the schema refuses, or stale query data.
pub(crate) fn lint_and_compare(database: &Database) -> io::Result<()> {
    let clippy = step::cargo(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])?;
    let stamp = step::target()?.join("query-data.stamp");
    let now = fingerprint(database.major())?;
    if fs::read_to_string(&stamp).is_ok_and(|last| last == now) {
        // Nothing that the data depends on has changed since it was last found fresh.
        return step::run("lints", &mut { clippy });
    }
    let fresh = read(&write_with("lints and query data", database, clippy)?)?;
    let committed = read(&committed_dir()?)?;
    let mut stale: Vec<String> = Vec::new();
    for (name, text) in &fresh {
        match committed.get(name) {
            Some(known) if known == text => {}
            Some(_) => stale.push(format!("  {name}: differs")),
            None => stale.push(format!("  {name}: missing")),
        }
    }
    stale.extend(
        committed.keys().filter(|name| !fresh.contains_key(*name)).map(|name| format!("  {name}: unused")),
    );
    if !stale.is_empty() {
        return Err(io::Error::other(format!(
            ".sqlx is stale; run `cargo xtask sqlx`\n{}",
            stale.join("\n")
        )));
    }
    println!("== query data: {} statements fresh", fresh.len());
    fs::write(stamp, now)
}

/// Compiles with `command` against `database` such that every statement's data is written, and says where.
fn write_with(name: &str, database: &Database, mut command: Command) -> io::Result<PathBuf> {
    let fresh = step::target()?.join("query-data");
    let _ = fs::remove_dir_all(&fresh);
    fs::create_dir_all(&fresh)?;
    #[expect(clippy::disallowed_methods, reason = "cargo compares file times with this machine's clock")]
    let now = SystemTime::now();
    for root in crate_roots()? {
        fs::File::options().append(true).open(root)?.set_modified(now)?;
    }
    database.lend(&mut command).env("SQLX_OFFLINE", "false").env("SQLX_OFFLINE_DIR", &fresh);
    step::run(name, &mut command)?;
    Ok(fresh)
}

fn committed_dir() -> io::Result<PathBuf> {
    Ok(paths::workspace()?.join(".sqlx"))
}

fn read(dir: &Path) -> io::Result<BTreeMap<String, String>> {
    let mut data = BTreeMap::new();
    for entry in fs::read_dir(dir).into_iter().flatten() {
        let entry = entry?;
        data.insert(entry.file_name().to_string_lossy().into_owned(), fs::read_to_string(entry.path())?);
    }
    Ok(data)
}

/// The root files of all targets of the crates that use sqlx: touching them makes cargo compile those targets.
fn crate_roots() -> io::Result<Vec<PathBuf>> {
    let mut roots = Vec::new();
    let files = source_files()?;
    for manifest in files.iter().filter(|file| file.ends_with("Cargo.toml")) {
        let Some(dir) = manifest.parent() else { continue };
        let text = fs::read_to_string(manifest)?;
        if text.starts_with("[workspace]") || !text.lines().any(|line| line.starts_with("sqlx")) {
            continue;
        }
        let is_root = |file: &&PathBuf| {
            let Ok(inside) = file.strip_prefix(dir) else { return false };
            let flat = ["src/bin", "tests", "examples", "benches"].map(Path::new);
            // A test or program of several files has a folder with a `main.rs`, wherever that is.
            inside == Path::new("src/lib.rs")
                || inside.ends_with("main.rs")
                || flat.iter().any(|folder| inside.parent() == Some(*folder))
        };
        roots.extend(files.iter().filter(is_root).cloned());
    }
    Ok(roots)
}

/// A hash of everything that the query data follows from.
fn fingerprint(major: u32) -> io::Result<String> {
    let mut hasher = DefaultHasher::new();
    major.hash(&mut hasher);
    for file in source_files()? {
        file.hash(&mut hasher);
        fs::read(&file)?.hash(&mut hasher);
    }
    for (name, text) in read(&committed_dir()?)? {
        (name, text).hash(&mut hasher);
    }
    Ok(format!("{:016x}", hasher.finish()))
}

/// All manifests, Rust sources and SQL files of the workspace, in order.
fn source_files() -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut dirs = vec![paths::workspace()?];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            let kind = entry.file_type()?;
            if kind.is_dir() && !name.starts_with('.') && name != "target" && name != "node_modules" {
                dirs.push(path);
            } else if kind.is_file()
                && [".rs", ".sql", "Cargo.toml", "Cargo.lock"].iter().any(|end| name.ends_with(end))
            {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}
