//! One fresh database a test, copied from a template that has the migrations.

use crate::Server;
use anyhow::Context;
use sqlx::migrate::Migrator;
use sqlx::postgres::{PgConnection, PgPoolOptions};
use sqlx::{AssertSqlSafe, Connection, PgPool};
use std::hash::{DefaultHasher, Hash, Hasher};
use uuid::Uuid;

/// Any number: the lock's name among the test processes that share a server.
const TEMPLATE_LOCK: i64 = 7_010_001;
/// Enough for a test that asks while something streams; the programs have pools of their own.
const CONNECTIONS: u32 = 8;

/// A migrated database that is dropped with this value.
pub struct Database {
    name: String,
    pool: PgPool,
    port: u16,
}

impl Database {
    /// Copies the template, making it first when this is the first test with these migrations.
    ///
    /// # Errors
    /// A migration fails or the server is out of reach.
    pub async fn create(server: &Server) -> anyhow::Result<Database> {
        let template = template(server).await?;
        Database::copy(server, &template)
    }

    /// A database of nothing but what `sql` makes, which may be of an earlier version.
    ///
    /// # Errors
    /// The server is out of reach or refuses the SQL.
    pub async fn restore(server: &Server, sql: &str) -> anyhow::Result<Database> {
        let database = Database::copy(server, "template0")?;
        // Roles belong to the whole server: one restore or template at a time. The lock ends with the session.
        let mut session = server.session()?;
        session.run(&format!("select pg_advisory_lock({TEMPLATE_LOCK})"))?;
        // A connection of its own: dumps change its settings.
        let mut connection = PgConnection::connect(&server.url(&database.name)).await?;
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await.context("restoring")?;
        connection.close().await?;
        drop(session);
        Ok(database)
    }

    fn copy(server: &Server, template: &str) -> anyhow::Result<Database> {
        let name = format!("promise_{}", Uuid::now_v7().simple());
        server.session()?.run(&format!("create database {name} template {template}"))?;
        // A database that is not there yet, or gone with a killed server, is an error at the first use, not here.
        let pool = PgPoolOptions::new().max_connections(CONNECTIONS).connect_lazy(&server.url(&name))?;
        Ok(Database { name, pool, port: server.port() })
    }

    /// The test's own connections, as superuser.
    #[must_use]
    pub fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// The database's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // A server that this test has stopped takes its databases along; a shared one keeps no litter.
        if let Ok(mut session) = backline_dev_cluster::pg::Session::connect(self.port, "postgres") {
            let _ = session.run(&format!("drop database if exists {} with (force)", self.name));
        }
    }
}

/// The name of the template of the current migrations, made under a lock and renamed last: a builder that was killed
/// leaves nothing that looks finished.
async fn template(server: &Server) -> anyhow::Result<String> {
    let migrations = backline_dev_cluster::paths::workspace()?.join("migrations");
    let mut migrator = Migrator::new(migrations.as_path()).await.context("reading migrations")?;
    // The record where `backline migrate` keeps it, since the programs compare it with what they were built with.
    migrator.dangerous_set_table_name("backline.migration");
    migrator.create_schema("backline");
    let mut hasher = DefaultHasher::new();
    migrator.iter().for_each(|migration| migration.checksum.hash(&mut hasher));
    let name = format!("backline_template_{:016x}", hasher.finish());
    let exists = format!("select count(*) from pg_database where datname = '{name}'");

    let mut session = server.session()?;
    if session.value(&exists)? == "1" {
        return Ok(name);
    }
    session.run(&format!("select pg_advisory_lock({TEMPLATE_LOCK})"))?;
    if session.value(&exists)? == "0" {
        session.run("drop database if exists backline_template_building with (force)")?;
        session.run("create database backline_template_building")?;
        let mut connection = PgConnection::connect(&server.url("backline_template_building")).await?;
        migrator.run(&mut connection).await?;
        connection.close().await?;
        session.run(&format!("alter database backline_template_building rename to {name}"))?;
    }
    // The lock ends with the session.
    Ok(name)
}
