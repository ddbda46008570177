//! A stack seen by the application: asking for things, and asking what became of them.

use crate::check::metrics;
use crate::{Stack, eventually, http};
use anyhow::Context;
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

/// Asks for an operation in the caller's transaction; the answer is its id.
///
/// # Errors
/// The database refuses it.
pub async fn enqueue_in(
    tx: &mut PgConnection,
    kind: &str,
    organization: Uuid,
    key: &str,
    input: &Value,
) -> sqlx::Result<Uuid> {
    let query = sqlx::query_scalar("select backline.enqueue_operation($1, $2, $3, $4)");
    query.bind(kind).bind(organization).bind(key).bind(input).fetch_one(tx).await
}

impl Stack {
    /// Commits an event about one aggregate as a producer does; the answer is its id.
    ///
    /// # Errors
    /// The database refuses it.
    pub async fn emit(
        &self,
        event_type: &str,
        organization: Uuid,
        aggregate: &str,
        payload: Value,
    ) -> sqlx::Result<Uuid> {
        let sql = "select backline.emit_event($1, $2, $2, 'order', $3, $4)";
        let query = sqlx::query_scalar(sql).bind(event_type).bind(organization).bind(aggregate).bind(payload);
        query.fetch_one(self.pool()).await
    }

    /// Asks for an operation as a producer does, in a transaction of its own; the answer is its id.
    ///
    /// # Errors
    /// The database refuses it.
    pub async fn enqueue(
        &self,
        kind: &str,
        organization: Uuid,
        key: &str,
        input: Value,
    ) -> sqlx::Result<Uuid> {
        let sql = "select backline.enqueue_operation($1, $2, $3, $4)";
        sqlx::query_scalar(sql)
            .bind(kind)
            .bind(organization)
            .bind(key)
            .bind(input)
            .fetch_one(self.pool())
            .await
    }

    /// State of an operation as a producer sees it, with its outcome and code once it has them.
    ///
    /// # Errors
    /// The database is out of reach.
    pub async fn status(
        &self,
        operation: Uuid,
    ) -> sqlx::Result<Option<(String, Option<String>, Option<String>)>> {
        let sql = "select state, outcome, code from backline.operation_status($1)";
        sqlx::query_as(sql).bind(operation).fetch_optional(self.pool()).await
    }

    /// One number from the database: most checks of a promise are a count.
    ///
    /// # Errors
    /// The statement fails.
    pub async fn count(&self, sql: &'static str) -> sqlx::Result<i64> {
        sqlx::query_scalar(sql).fetch_one(self.pool()).await
    }

    /// State of an open operation, outcome of a finished one, `absent` before anybody asked.
    ///
    /// # Errors
    /// The database is out of reach.
    pub async fn state(&self, operation: Uuid) -> sqlx::Result<String> {
        Ok(match self.status(operation).await? {
            None => "absent".to_owned(),
            Some((_, Some(outcome), _)) => outcome,
            Some((state, None, _)) => state,
        })
    }

    /// Waits until an operation's [`Stack::state`] is `wanted`.
    ///
    /// # Errors
    /// It is not, for as long as [`crate::LIMIT`]; the error names what it was last.
    pub async fn comes_to(&self, operation: Uuid, wanted: &str) -> anyhow::Result<()> {
        let mut last = String::new();
        let what = format!("{operation} to be {wanted}");
        let reached = eventually(&what, async || {
            last = self.state(operation).await?;
            Ok(last == wanted)
        });
        reached.await.with_context(|| format!("it is {last}"))
    }

    /// One number about one operation, for example its attempts.
    ///
    /// # Errors
    /// The statement fails or returns no row.
    pub async fn number(&self, sql: &'static str, operation: Uuid) -> sqlx::Result<i64> {
        sqlx::query_scalar(sql).bind(operation).fetch_one(self.pool()).await
    }

    /// Sum of one metric over its labels, on a member's page now.
    ///
    /// # Errors
    /// The member does not answer.
    pub fn metric(&mut self, member: &str, metric: &str) -> anyhow::Result<f64> {
        let page = http::must(self.member(member)?.address()?, "GET", "/metrics", &Value::Null)?;
        Ok(metrics::sum(&page, metric))
    }
}
