//! The private PostgreSQL of a run, with the schema in place.

use crate::postgres;
use backline_dev_cluster::paths;
use backline_dev_cluster::pg::{Cluster, Options};
use std::process::Command;
use std::{fs, io};

/// The database whose schema the query macros see.
const NAME: &str = "backline_check";

/// A cluster that ends with this process, however it ends.
pub(crate) struct Database {
    cluster: Cluster,
}

impl Database {
    /// Starts a throwaway cluster and applies all migrations.
    ///
    /// # Errors
    /// PostgreSQL is missing or does not start, or a migration fails; the error names it.
    pub(crate) fn start() -> io::Result<Database> {
        postgres::ensure()?;
        // Every test opens pools of its own, two tests at a time, next to the programs that they start.
        Database::with(Options::throwaway()?.setting("max_connections", "300"))
    }

    /// Starts the given cluster and applies all migrations.
    ///
    /// # Errors
    /// As [`Database::start`].
    pub(crate) fn with(options: Options) -> io::Result<Database> {
        let cluster = options.start()?;
        cluster.create_database(NAME)?;
        let mut session = cluster.session(NAME)?;
        let mut files: Vec<_> = fs::read_dir(paths::workspace()?.join("migrations"))?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<io::Result<_>>()?;
        files.retain(|file| file.extension().is_some_and(|extension| extension == "sql"));
        files.sort();
        for file in &files {
            let failed = |error| io::Error::other(format!("migration {}: {error}", file.display()));
            session.run(&fs::read_to_string(file)?).map_err(failed)?;
        }
        println!("== PostgreSQL {}: {} migrations applied", cluster.binaries().major(), files.len());
        Ok(Database { cluster })
    }

    /// Major version of the server.
    pub(crate) fn major(&self) -> u32 {
        self.cluster.binaries().major()
    }

    /// A connection URL, as the superuser.
    pub(crate) fn url(&self) -> String {
        self.cluster.url(NAME)
    }

    /// Points `command` at this database, over a `.env` file or the shell's own settings.
    pub(crate) fn lend<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env("DATABASE_URL", self.url()).env("PG_BIN", self.cluster.binaries().dir())
    }

    /// The server's maintenance database, where tests create databases of their own.
    pub(crate) fn server_url(&self) -> String {
        self.cluster.url("postgres")
    }
}
