//! Finding PostgreSQL's server programs.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

/// The oldest major version that is supported; the migrations rely on nothing newer.
pub const OLDEST_MAJOR: u32 = 15;

/// A directory of PostgreSQL's server programs (`initdb`, `postgres`).
#[derive(Debug, Clone)]
pub struct Binaries {
    dir: PathBuf,
    major: u32,
}

impl Binaries {
    /// Looks in `$PG_BIN`, then where `pg_config` points, then in the usual places of Debian, Homebrew and
    /// Postgres.app, and takes the newest it finds in the first of these that has one.
    ///
    /// # Errors
    /// Nothing found, or nothing of version [`OLDEST_MAJOR`] or newer; the error names what was seen. A `$PG_BIN`
    /// that is set and unusable is an error, never skipped.
    pub fn find() -> io::Result<Binaries> {
        if let Some(dir) = env::var_os("PG_BIN").filter(|dir| !dir.is_empty()) {
            return Binaries::in_dir(Path::new(&dir))
                .map_err(|error| io::Error::other(format!("PG_BIN is unusable: {error}")));
        }
        let mut refused = Vec::new();
        for places in [from_pg_config(), usual_places()] {
            let (usable, broken): (Vec<_>, Vec<_>) =
                places.iter().map(|dir| Binaries::in_dir(dir)).partition(Result::is_ok);
            refused.extend(broken.into_iter().filter_map(Result::err).map(|error| error.to_string()));
            if let Some(newest) = usable.into_iter().flatten().max_by_key(|binaries| binaries.major) {
                return Ok(newest);
            }
        }
        refused.insert(0, format!("no PostgreSQL {OLDEST_MAJOR} or newer found; install it or set PG_BIN"));
        Err(io::Error::new(io::ErrorKind::NotFound, refused.join("; ")))
    }

    /// Checks one directory.
    ///
    /// # Errors
    /// The server programs are missing or older than [`OLDEST_MAJOR`].
    pub fn in_dir(dir: &Path) -> io::Result<Binaries> {
        for program in ["initdb", "postgres"] {
            if !dir.join(program).is_file() {
                return Err(io::Error::other(format!("{} has no {program}", dir.display())));
            }
        }
        let output = Command::new(dir.join("postgres")).arg("--version").output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        match major(&text) {
            Some(major) if major >= OLDEST_MAJOR => Ok(Binaries { dir: dir.to_owned(), major }),
            _ => Err(io::Error::other(format!(
                "{} holds {:?}, but {OLDEST_MAJOR} or newer is needed",
                dir.display(),
                text.trim()
            ))),
        }
    }

    /// The major version, such as 17.
    #[must_use]
    pub fn major(&self) -> u32 {
        self.major
    }

    /// The directory itself.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The path of one program, which some distributions of PostgreSQL leave out (`pg_basebackup`, `psql`).
    ///
    /// # Errors
    /// The program is not there.
    pub fn program(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.dir.join(name);
        if path.is_file() {
            return Ok(path);
        }
        Err(io::Error::new(io::ErrorKind::NotFound, format!("{} has no {name}", self.dir.display())))
    }
}

/// Reads 17 from "postgres (PostgreSQL) 17.2 (Debian 17.2-1)" and 18 from "postgres (PostgreSQL) 18beta1".
fn major(version: &str) -> Option<u32> {
    let number = version.split_once("(PostgreSQL) ")?.1;
    number.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

fn from_pg_config() -> Vec<PathBuf> {
    let Ok(output) = Command::new("pg_config").arg("--bindir").output() else { return Vec::new() };
    let dir = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    // Client packages ship pg_config without a server: then the other places are asked.
    if dir.join("postgres").is_file() { vec![dir] } else { Vec::new() }
}

/// Debian, Homebrew (Apple silicon and Intel) and Postgres.app keep one folder a version; Fedora's packages and
/// Nix put the programs on the path.
fn usual_places() -> Vec<PathBuf> {
    let roots = [
        "/usr/lib/postgresql",
        "/opt/homebrew/opt",
        "/usr/local/opt",
        "/Applications/Postgres.app/Contents/Versions",
    ];
    let path = env::var_os("PATH").unwrap_or_default();
    let versions = roots.iter().filter_map(|root| fs::read_dir(root).ok());
    let mut places: Vec<PathBuf> =
        versions.flat_map(|entries| entries.flatten().map(|entry| entry.path().join("bin"))).collect();
    places.extend(env::split_paths(&path));
    places.retain(|dir| dir.join("postgres").is_file() && dir.join("initdb").is_file());
    places
}

#[cfg(test)]
mod tests {
    use super::major;

    #[test]
    fn versions_of_releases_betas_and_packages_are_read() {
        assert_eq!(major("postgres (PostgreSQL) 15.13 (Debian 15.13-0+deb12u1)\n"), Some(15));
        assert_eq!(major("postgres (PostgreSQL) 18beta1\n"), Some(18));
        assert_eq!(major("postgres (PostgreSQL) 9.6.24\n"), Some(9));
        assert_eq!(major("something else"), None);
    }
}
