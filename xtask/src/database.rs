//! The private PostgreSQL of a run, with the schema in place.

use crate::postgres;
use backline_dev_cluster::paths;
use backline_dev_cluster::pg::{Cluster, Options};
use std::process::Command;
use std::{fs, io};

/// The database whose schema the query macros see.
const NAME: &str = "backline_check";

/// The record of applied migrations as `backline migrate` keeps it: relays and workers start only on a schema that is
/// recorded there.
const RECORD: &str = "create schema backline; create table backline.migration (version bigint primary key, description text not null, \
    installed_on timestamptz not null default now(), success boolean not null, checksum bytea not null, \
    execution_time bigint not null)";

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
        session.run(RECORD)?;
        for file in &files {
            let failed = |error| io::Error::other(format!("migration {}: {error}", file.display()));
            let text = fs::read_to_string(file)?;
            session.run(&text).map_err(failed)?;
            let name = file.file_stem().unwrap_or_default().to_string_lossy();
            let (version, description) = name.split_once('_').unwrap_or((&name, ""));
            let noted = format!(
                "insert into backline.migration values ({version}::bigint, '{description}', now(), true, \
                 sha384(convert_to($migration_text${text}$migration_text$, 'UTF8')), 0)"
            );
            session.run(&noted).map_err(failed)?;
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
