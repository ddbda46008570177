//! The transaction lent to `record`.

use crate::Error;
use crate::author::{Operation, Owed};
use backline_envelope::{Event, child_event_id};
use backline_outbox::{AppendError, NewOperation};
use sqlx::PgConnection;
use uuid::Uuid;

/// The fenced finish transaction, lent for the handler's rows and its follow-up work.
#[derive(Debug)]
pub struct Record<'a> {
    pub(crate) tx: &'a mut PgConnection,
    pub(crate) operation: &'a Operation,
}

impl Record<'_> {
    /// The operation that is being finished.
    #[must_use]
    pub fn operation(&self) -> &Operation {
        self.operation
    }

    /// The connection for the handler's own rows. BEGIN and COMMIT are the runtime's.
    pub fn connection(&mut self) -> &mut PgConnection {
        self.tx
    }

    /// Emits a child event about `(aggregate_type, aggregate_id)`. Its id is a function of the operation, its
    /// generation and `step`, so a repeated record emits the same event.
    ///
    /// # Errors
    /// [`Error::Record`] when the payload does not serialize, the database's otherwise.
    pub async fn emit<E: Event>(
        &mut self,
        step: &str,
        aggregate_type: &str,
        aggregate_id: &str,
        aggregate_version: Option<i64>,
        payload: &E,
    ) -> Result<Uuid, Error> {
        let operation = self.operation;
        let step = format!("{}/{step}", operation.generation);
        let mut id = child_event_id(operation.accepted_at, operation.id, &step, aggregate_id);
        if backline_crash_point::seeded_bug(10) {
            id = Uuid::now_v7();
        }
        let payload = serde_json::to_string(payload).map_err(|e| Error::Record(e.to_string()))?;
        sqlx::query_file_scalar!(
            "sql/emit_child.sql",
            id,
            E::TYPE,
            operation.organization,
            E::VERSION,
            operation.project,
            aggregate_type,
            aggregate_id,
            aggregate_version,
            operation.correlation_id,
            operation.id,
            operation.traceparent,
            payload,
        )
        .fetch_one(&mut *self.tx)
        .await?;
        Ok(id)
    }

    /// Asks for follow-up work of a handler, in this operation's organization and project.
    ///
    /// # Errors
    /// As [`enqueue`](Self::enqueue).
    pub async fn owe(&mut self, owed: Owed) -> Result<Uuid, Error> {
        let child = owed.within(self.operation.organization).map_err(Error::Record)?;
        self.enqueue(child).await
    }

    /// Asks for a child operation; project, correlation, causation and trace are this operation's where it has none.
    ///
    /// # Errors
    /// [`Error::Record`] when the request is refused, the database's otherwise.
    pub async fn enqueue(&mut self, mut child: NewOperation) -> Result<Uuid, Error> {
        child.project = child.project.or(self.operation.project);
        child.correlation_id = child.correlation_id.or(Some(self.operation.correlation_id));
        child.causation_id = child.causation_id.or(Some(self.operation.id));
        child.traceparent = child.traceparent.or_else(|| self.operation.traceparent.clone());
        backline_outbox::enqueue(&mut *self.tx, &child).await.map_err(|error| match error {
            AppendError::Database(error) => Error::Database(error),
            refused => Error::Record(refused.to_string()),
        })
    }
}
