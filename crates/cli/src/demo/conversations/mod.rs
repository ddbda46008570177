//! The other application: conversations whose members come and go by plain SQL, in transactions of its own.

mod books;
mod commit;
mod script;

use anyhow::Context;
use backline_example_conversations as app;
use backline_outbox::run_tx;
pub(super) use books::{Balance, Faults, balance, faults, one_story};
use script::{CHANGES, CONVERSATIONS, Change, FIRST, PEOPLE, PRODUCERS};
use serde_json::json;
use sqlx::PgPool;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::JoinSet;
use uuid::Uuid;

/// A conversation as the application knows it.
#[derive(Debug, Clone, Copy)]
struct Conversation {
    id: Uuid,
    /// Number of its project.
    project: usize,
}

/// The application, with every id fixed before its first commit: a repetition is the same change.
#[derive(Debug)]
pub(super) struct Chat {
    pool: PgPool,
    seed: u64,
    organization: Uuid,
    /// The second is there to be deleted.
    projects: [Uuid; 2],
    /// Of each project.
    people: [Vec<Uuid>; 2],
    conversations: Vec<Conversation>,
}

/// What was acknowledged.
#[derive(Debug, Default)]
pub(super) struct Acknowledged {
    /// Conversations that were opened.
    pub(super) opened: usize,
    /// Transactions that changed something.
    pub(super) changes: usize,
    /// Ends, among them.
    pub(super) ends: usize,
    /// Whether somebody is in a conversation, by the numbers of both.
    members: BTreeMap<(usize, usize), bool>,
}

impl Chat {
    pub(super) fn new(pool: PgPool, seed: u64) -> Chat {
        let conversations = (0..CONVERSATIONS)
            .map(|n| Conversation { id: Uuid::now_v7(), project: script::project(n) })
            .collect();
        let people = || (0..PEOPLE).map(|_| Uuid::now_v7()).collect();
        Chat {
            pool,
            seed,
            organization: Uuid::now_v7(),
            projects: [Uuid::now_v7(), Uuid::now_v7()],
            people: [people(), people()],
            conversations,
        }
    }

    /// A conversation that stays active, for whoever wants to follow one.
    pub(super) fn followed(&self) -> Uuid {
        self.conversations.first().map_or(self.organization, |conversation| conversation.id)
    }

    /// The application's tables, its two projects and their people. Nothing is killed meanwhile.
    pub(super) async fn prepare(&self) -> sqlx::Result<()> {
        run_tx!(&self.pool, "demo_chat", |tx| async {
            app::install(tx).await?;
            let sql = "insert into chat.organization values ($1, 'demo')";
            sqlx::query(sql).bind(self.organization).execute(&mut *tx).await?;
            for (project, people) in self.projects.into_iter().zip(&self.people) {
                let sql = "insert into chat.project values ($1, $2, 'demo')";
                sqlx::query(sql).bind(project).bind(self.organization).execute(&mut *tx).await?;
                for (n, person) in people.iter().enumerate() {
                    let who = json!({"chat": {"identity": identity(n)}});
                    app::register(tx, *person, project, &who).await?;
                }
            }
            Ok::<_, sqlx::Error>(())
        })
    }

    /// Opens the conversations and lets the producers change them as `progress` rises to `end`, each change until it
    /// is acknowledged.
    pub(super) async fn play(
        self: Arc<Self>,
        progress: watch::Receiver<usize>,
        end: usize,
    ) -> anyhow::Result<Acknowledged> {
        let mut all = Acknowledged::default();
        for n in 0..CONVERSATIONS {
            self.open(n).await?;
            all.opened += 1;
            all.members.extend(FIRST.map(|person| ((n, person), true)));
        }
        let mut running = JoinSet::new();
        for producer in 0..PRODUCERS {
            running.spawn(Arc::clone(&self).produce(producer, progress.clone(), end));
        }
        while let Some(done) = running.join_next().await {
            let of_one = done.context("producer")??;
            all.changes += of_one.changes;
            all.ends += of_one.ends;
            all.members.extend(of_one.members);
        }
        Ok(all)
    }

    async fn produce(
        self: Arc<Self>,
        producer: usize,
        mut progress: watch::Receiver<usize>,
        end: usize,
    ) -> anyhow::Result<Acknowledged> {
        let mut done = Acknowledged::default();
        for (n, change) in script::changes(self.seed, producer).into_iter().enumerate() {
            // As far as the payments are: whatever hits them hits this as well.
            progress.wait_for(|count| count * CHANGES >= (n * end).min(end * CHANGES)).await?;
            if !self.until_acknowledged(&change).await? {
                continue;
            }
            done.changes += 1;
            match change {
                Change::Members { conversation, joins, leaves } => {
                    done.members.extend(joins.map(|person| ((conversation, person), true)));
                    done.members.extend(leaves.map(|person| ((conversation, person), false)));
                }
                Change::OldIntent(_) => {}
                _ => done.ends += 1,
            }
        }
        Ok(done)
    }
}

/// Of the nth person, at the provider.
fn identity(n: usize) -> String {
    format!("user-{n}")
}
