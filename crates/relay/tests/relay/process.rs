//! The binary: signals, exit codes, health pages, a kill between confirmation and record (reliability R6, M4).

use crate::support::{PUBLISHED, SOON, Setup, WAITING, drain};
use anyhow::{Context, Result};
use sqlx::PgPool;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::time::Instant;

struct Process {
    child: Child,
    health: String,
}

impl Process {
    async fn start(setup: &Setup, scratch: &PgPool, crash: Option<&str>) -> Result<Self> {
        let (mut command, health) = Self::command(setup, scratch).await?;
        command.stderr(Stdio::null()).kill_on_drop(true);
        if let Some(plan) = crash {
            command.env("BACKLINE_CRASH_PLAN", plan);
        }
        Ok(Self { child: command.spawn()?, health })
    }

    /// The program with its settings, and where its health pages will be.
    async fn command(setup: &Setup, scratch: &PgPool) -> Result<(Command, String)> {
        let options = scratch.connect_options();
        let database = options.get_database().context("no database")?;
        let url = format!(
            "postgres://{}@{}:{}/{database}",
            options.get_username(),
            options.get_host(),
            options.get_port()
        );
        let health = TcpListener::bind("127.0.0.1:0").await?.local_addr()?.to_string();
        let mut command = Command::new(env!("CARGO_BIN_EXE_backline-relay"));
        command
            .env("DATABASE_URL", url)
            .env("PUBSUB_EMULATOR_HOST", setup.emulator.addr.to_string())
            .env("PUBSUB_PROJECT_ID", "project")
            .env("BACKLINE_RELAY_HEALTH", &health)
            .env("BACKLINE_RELAY_LEASE", "2s")
            .env("BACKLINE_RELAY_PUBLISH_TIMEOUT", "1s");
        Ok((command, health))
    }

    /// Status code and body of a health page.
    async fn page(&self, path: &str) -> Result<(u16, String)> {
        let mut stream = TcpStream::connect(&self.health).await?;
        let request = format!("GET {path} HTTP/1.1\r\nhost: relay\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        let status = answer.split(' ').nth(1).context("no status")?.parse()?;
        Ok((status, answer))
    }

    async fn ready(&self) -> Result<()> {
        let limit = Instant::now() + SOON;
        loop {
            match self.page("/readyz").await {
                Ok((200, _)) => return Ok(()),
                other => anyhow::ensure!(Instant::now() < limit, "not ready: {other:?}"),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn exit(&mut self) -> Result<ExitStatus> {
        Ok(tokio::time::timeout(SOON, self.child.wait()).await.context("still running")??)
    }

    async fn signal(&self, name: &str) -> Result<()> {
        let pid = self.child.id().context("not running")?.to_string();
        Command::new("kill").args(["-s", name, &pid]).status().await?;
        Ok(())
    }
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn a_relay_gets_ready_publishes_and_stops_cleanly_on_sigterm(pool: PgPool) -> Result<()> {
    let setup = Setup::new(&pool).await?;
    let mut relay = Process::start(&setup, &pool, None).await?;
    relay.ready().await?;
    setup.emit_many(10).await?;
    setup.settles(PUBLISHED, 10).await?;
    // Counted just after the commit that the count above saw.
    let limit = Instant::now() + SOON;
    while !relay.page("/metrics").await?.1.contains("backline_outbox_published_total 10") {
        anyhow::ensure!(Instant::now() < limit, "published entries are not counted");
    }
    assert_eq!(relay.page("/livez").await?.0, 200);
    relay.signal("TERM").await?;
    assert_eq!(relay.exit().await?.code(), Some(0));
    let held = "select count(*) from backline.outbox_lane where until > clock_timestamp()";
    assert_eq!(setup.count(held).await?, 0);
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn a_kill_between_confirmation_and_record_repeats_the_same_id_and_bytes(pool: PgPool) -> Result<()> {
    let setup = Setup::new(&pool).await?;
    let id = setup.emit_many(1).await?[0];
    let mut killed = Process::start(&setup, &pool, Some("tx.relay.mark.commit.before#1=kill")).await?;
    assert_eq!(killed.exit().await?.code(), None, "ended by the signal");
    assert_eq!((setup.count(WAITING).await?, setup.count(PUBLISHED).await?), (1, 0));

    let mut next = Process::start(&setup, &pool, None).await?;
    setup.settles(PUBLISHED, 1).await?;
    let got = drain(&mut setup.read(), 2).await?;
    assert_eq!(got[0], got[1]);
    assert_eq!(got[0].0, id);
    next.signal("TERM").await?;
    assert_eq!(next.exit().await?.code(), Some(0));
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn a_setting_that_cannot_work_is_named_at_start(pool: PgPool) -> Result<()> {
    let setup = Setup::new(&pool).await?;
    let output = Command::new(env!("CARGO_BIN_EXE_backline-relay"))
        .env("DATABASE_URL", "postgres://nobody@127.0.0.1:1/none")
        .env("PUBSUB_EMULATOR_HOST", setup.emulator.addr.to_string())
        .args(["--lease", "3s", "--publish-timeout", "2s"])
        .output()
        .await?;
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("lease: is shorter than twice publish_timeout"), "{text}");
    Ok(())
}

#[sqlx::test(migrator = "backline_outbox::MIGRATIONS")]
async fn an_older_schema_is_refused_at_start_and_a_newer_one_is_not(pool: PgPool) -> Result<()> {
    let setup = Setup::new(&pool).await?;
    let newest = "select max(version) from backline.migration";
    let newest: i64 = sqlx::query_scalar(newest).fetch_one(&pool).await?;
    let next = "insert into backline.migration (version, description, success, checksum, execution_time) values ($1, 'next', true, '', 0)";
    sqlx::query(next).bind(newest + 1).execute(&pool).await?;
    let mut relay = Process::start(&setup, &pool, None).await?;
    relay.ready().await?;
    relay.signal("TERM").await?;
    assert_eq!(relay.exit().await?.code(), Some(0));

    sqlx::query("delete from backline.migration where version >= $1").bind(newest).execute(&pool).await?;
    let mut command = Process::command(&setup, &pool).await?.0;
    let output = tokio::time::timeout(SOON, command.output()).await.context("still running")??;
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let named =
        format!("has version {}, this build needs version {newest}: run `backline migrate`", newest - 1);
    assert!(text.contains(&named), "{text}");
    Ok(())
}
