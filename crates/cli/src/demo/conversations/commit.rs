//! One change, in one transaction, until it is acknowledged.

use super::Chat;
use super::script::{Change, FIRST};
use anyhow::Context;
use backline_example_conversations as app;
use backline_outbox::run_tx;
use sqlx::PgConnection;
use std::time::Duration;
use uuid::Uuid;

/// Pause of the application before it asks a database again that did not answer.
const PAUSE: Duration = Duration::from_millis(200);

impl Chat {
    /// Opens the nth conversation with its first members, in one transaction.
    pub(super) async fn open(&self, n: usize) -> anyhow::Result<()> {
        let conversation = self.conversations[n];
        loop {
            let done = run_tx!(&self.pool, "demo_open", |tx| async {
                let sql = "select exists (select from chat.conversation where id = $1)";
                // A repetition whose first run was committed.
                if sqlx::query_scalar(sql).bind(conversation.id).fetch_one(&mut *tx).await? {
                    return Ok(());
                }
                app::open_conversation(
                    tx,
                    conversation.id,
                    self.projects[conversation.project],
                    &format!("talk {n}"),
                )
                .await?;
                for person in FIRST {
                    app::add_member(tx, conversation.id, self.person(n, person)).await?;
                }
                Ok::<_, sqlx::Error>(())
            });
            match done {
                Ok(()) => return Ok(()),
                Err(error) => self.bear(error).await?,
            }
        }
    }

    /// Commits a change. False where the conversation has ended meanwhile, which refuses it for good.
    pub(super) async fn until_acknowledged(&self, change: &Change) -> anyhow::Result<bool> {
        loop {
            let done = run_tx!(&self.pool, "demo_change", |tx| self.make(tx, change));
            match done {
                Ok(()) => return Ok(true),
                Err(sqlx::Error::Database(error)) if ended(error.as_ref()) => return Ok(false),
                Err(error) => self.bear(error).await?,
            }
        }
    }

    /// Each of these may be repeated after it was committed: it finds what it wanted.
    async fn make(&self, tx: &mut PgConnection, change: &Change) -> sqlx::Result<()> {
        let id = |n: usize| self.conversations[n].id;
        match change {
            Change::Members { conversation, joins, leaves } => {
                if let Some(person) = leaves {
                    app::remove_member(tx, id(*conversation), self.person(*conversation, *person)).await?;
                }
                if let Some(person) = joins {
                    app::add_member(tx, id(*conversation), self.person(*conversation, *person)).await?;
                }
            }
            Change::Close(n) => drop(app::close_conversation(tx, id(*n)).await?),
            Change::Archive(n) => drop(app::archive_conversation(tx, id(*n)).await?),
            Change::Delete(n) => drop(app::delete_conversation(tx, id(*n)).await?),
            Change::DeleteProject(n) => {
                let sql = "delete from chat.project where id = $1";
                sqlx::query(sql).bind(self.project(*n)).execute(tx).await?;
            }
            Change::OldIntent(n) => {
                let sql = "select chat.owe('twilio.participants', $1, $2, $3)";
                let owed = sqlx::query(sql).bind(id(*n)).bind(self.organization);
                owed.bind(self.project(*n)).execute(tx).await?;
            }
        }
        Ok(())
    }

    fn person(&self, conversation: usize, n: usize) -> Uuid {
        self.people[self.conversations[conversation].project][n]
    }

    fn project(&self, conversation: usize) -> Uuid {
        self.projects[self.conversations[conversation].project]
    }

    /// Waits a moment where the database was down, is starting, or has lost the reply; any other error is ours.
    async fn bear(&self, error: sqlx::Error) -> anyhow::Result<()> {
        let ours = matches!(&error, sqlx::Error::Database(error)
            if error.code().is_some_and(|code| ["22", "23", "42"].iter().any(|class| code.starts_with(class))));
        if ours {
            return Err(error).context("the example application refuses the demo's change");
        }
        tokio::time::sleep(PAUSE).await;
        Ok(())
    }
}

/// The conversation is not active (55000), or goes with its project at this moment (23503).
fn ended(error: &dyn sqlx::error::DatabaseError) -> bool {
    error.code().is_some_and(|code| code == "55000" || code == "23503")
}
