//! Operations in the states that need an operator, and the command that is run on them.

use anyhow::{Context, Result};
use serde_json::Value;
use sqlx::PgPool;
use tokio::process::Command;
use uuid::Uuid;

pub(crate) const ORGANIZATION: Uuid = Uuid::from_u128(0x0a);

/// What the command answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: Option<i32>,
    pub(crate) json: Value,
}

impl Answer {
    /// The reason of a refusal.
    pub(crate) fn error(&self) -> &str {
        self.json["error"].as_str().unwrap_or_default()
    }
}

/// Runs `backline --json` on the test's database.
pub(crate) async fn backline(pool: &PgPool, args: &[&str]) -> Result<Answer> {
    let options = pool.connect_options();
    let name = options.get_database().context("the test has a database")?;
    let server = std::env::var("DATABASE_URL").context("DATABASE_URL is not set")?;
    let (server, _) = server.rsplit_once('/').context("DATABASE_URL names no database")?;
    let output = Command::new(env!("CARGO_BIN_EXE_backline"))
        .arg("--json")
        .args(args)
        .env("DATABASE_URL", format!("{server}/{name}"))
        .env("USER", "ann")
        .env_remove("PUBSUB_EMULATOR_HOST")
        .output()
        .await?;
    let text = String::from_utf8(output.stdout)?;
    let json = serde_json::from_str(&text).with_context(|| format!("{args:?} answered {text:?}"))?;
    Ok(Answer { code: output.status.code(), json })
}

/// Declares a kind; `irreversible` ones need a second person.
pub(crate) async fn kind(pool: &PgPool, name: &str, irreversible: bool) -> Result<()> {
    let sql = "insert into backline.kind (kind, workload, mode, provider_account, serial, native_idempotency, irreversible, idempotency_window,
                   request_timeout) values ($1, 'payments', 'command', 'stripe:platform', 'exclusive', true, $2, '23 h', '10 s')";
    sqlx::query(sql).bind(name).bind(irreversible).execute(pool).await?;
    Ok(())
}

/// An operation of kind `test.pay` in `state`, after three attempts; those that keep their key hold it.
pub(crate) async fn operation(
    pool: &PgPool,
    key: &str,
    state: &str,
    serial_key: Option<&str>,
) -> Result<Uuid> {
    let doubt = matches!(state, "unknown" | "manual");
    let sql = "insert into backline.operation (id, kind, organization, operation_key, mode, state, waiting_for, due_at, serial_key, serial, input,
                   claimed_generation, may_have_left, attempt, lookups, failure_class, failure_code, first_submitted_at, correlation_id)
               values (backline.operation_id($1, 'test.pay', $2), 'test.pay', $1, $2, 'command', ($3::text)::backline.operation_state,
                   case when $3 = 'waiting' then 'serial' end, clock_timestamp(), $4, 'exclusive', '{\"minor\": 7}', 1, $5, 3, 2, 'unknown', 'lost',
                   clock_timestamp(), gen_random_uuid()) returning id";
    let id: Uuid = sqlx::query_scalar(sql)
        .bind(ORGANIZATION)
        .bind(key)
        .bind(state)
        .bind(serial_key)
        .bind(doubt)
        .fetch_one(pool)
        .await?;
    if let (true, Some(serial_key)) = (doubt, serial_key) {
        let sql =
            "insert into backline.serial_hold (organization, serial_key, operation_id) values ($1, $2, $3)";
        sqlx::query(sql).bind(ORGANIZATION).bind(serial_key).bind(id).execute(pool).await?;
    }
    Ok(id)
}

/// State of an open operation, its submission and its attempts.
pub(crate) async fn state(pool: &PgPool, id: Uuid) -> Result<Option<(String, i32, i32)>> {
    let sql = "select state::text, submission, attempt from backline.operation where id = $1";
    Ok(sqlx::query_as(sql).bind(id).fetch_optional(pool).await?)
}

/// Whether a claim would find work of the kind: its lane is due.
pub(crate) async fn lane_due(pool: &PgPool) -> Result<bool> {
    let sql = "select exists (select from backline.ready_lane where kind = 'test.pay' and organization = $1 and next_due <= clock_timestamp())";
    Ok(sqlx::query_scalar(sql).bind(ORGANIZATION).fetch_one(pool).await?)
}

/// Actions in the audit of an operation.
pub(crate) async fn audited(pool: &PgPool, id: Uuid) -> Result<Vec<(String, String, String)>> {
    let sql = "select action, actor, reason from backline.audit where operation_id = $1 order by id";
    Ok(sqlx::query_as(sql).bind(id).fetch_all(pool).await?)
}
