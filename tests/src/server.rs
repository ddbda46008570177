//! The PostgreSQL server under a test: shared where nobody breaks it, private where somebody does.

use anyhow::Context;
use backline_dev_cluster::pg::{Cluster, Options, Session};
use sqlx::postgres::PgConnectOptions;
use std::sync::OnceLock;

/// Names a server of the calling runner (`cargo xtask test`), which saves starting one for every test process.
const SHARED: &str = "BACKLINE_TEST_PG";

/// A PostgreSQL server on this machine whose superuser needs no password.
pub enum Server {
    /// Used by other tests at the same time: nobody may stop it.
    Shared {
        /// Its TCP port on 127.0.0.1.
        port: u16,
    },
    /// This test's own, to be killed, restarted and failed over at will.
    Own(Box<Cluster>),
}

impl Server {
    /// The server named by `BACKLINE_TEST_PG`, else one for this test process.
    ///
    /// # Errors
    /// PostgreSQL is missing or does not start.
    pub fn shared() -> anyhow::Result<Server> {
        static CLUSTER: OnceLock<Result<Cluster, String>> = OnceLock::new();
        if let Some(url) = std::env::var(SHARED).ok().filter(|url| !url.is_empty()) {
            let port =
                url.parse::<PgConnectOptions>().with_context(|| format!("{SHARED} is not a URL"))?.get_port();
            return Ok(Server::Shared { port });
        }
        // Ends with the process: its keeper sees to that, since statics are never dropped.
        match CLUSTER.get_or_init(|| start().map_err(|error| error.to_string())) {
            Ok(cluster) => Ok(Server::Shared { port: cluster.port() }),
            Err(error) => anyhow::bail!("{error}"),
        }
    }

    /// A server of this test's own.
    ///
    /// # Errors
    /// PostgreSQL is missing or does not start.
    pub fn own() -> anyhow::Result<Server> {
        Ok(Server::Own(Box::new(start()?)))
    }

    /// TCP port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        match self {
            Server::Shared { port } => *port,
            Server::Own(cluster) => cluster.port(),
        }
    }

    /// The cluster, for faults.
    ///
    /// # Errors
    /// The server is shared: ask for `own_server()` when building the stack.
    pub fn cluster(&mut self) -> anyhow::Result<&mut Cluster> {
        match self {
            Server::Own(cluster) => Ok(cluster),
            Server::Shared { .. } => {
                anyhow::bail!("this test shares its server: build the stack with `own_server()`")
            }
        }
    }

    pub(crate) fn session(&self) -> anyhow::Result<Session> {
        Ok(Session::connect(self.port(), "postgres")?)
    }

    pub(crate) fn url(&self, database: &str) -> String {
        self.url_at(self.port(), database)
    }

    /// As [`Server::url`], by way of another port: a proxy's.
    #[expect(clippy::unused_self, reason = "the superuser's name is the server's")]
    pub(crate) fn url_at(&self, port: u16, database: &str) -> String {
        format!("postgres://{}@127.0.0.1:{port}/{database}", backline_dev_cluster::pg::USER)
    }
}

fn start() -> std::io::Result<Cluster> {
    Options::throwaway()?.setting("max_connections", "200").start()
}
