//! The example application with conversations as a producer, and what its provider has: the two sides that must agree.

use crate::{SANDBOX, Stack, http};
use anyhow::Context;
use backline_example_conversations as app;
use serde_json::{Value, json};
use sqlx::PgPool;
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

/// One project of the application, with people who may join conversations.
#[derive(Debug, Clone)]
pub struct Chat {
    /// Tenant.
    pub organization: Uuid,
    /// Its one project.
    pub project: Uuid,
    /// People; the identity of the nth is `user-n`.
    pub members: Vec<Uuid>,
    pool: PgPool,
}

/// A conversation as the provider has it, lags ignored.
#[derive(Debug, Clone)]
pub struct Room {
    /// The provider's id.
    pub sid: String,
    /// The application's id.
    pub name: String,
    /// Every state it was written to, in order.
    pub states: Vec<String>,
    /// Identities of its participants.
    pub people: BTreeSet<String>,
    /// It is gone.
    pub deleted: bool,
}

impl Chat {
    /// Creates the application's tables and one project with `members` people.
    ///
    /// # Errors
    /// The database refuses it.
    pub async fn install(stack: &Stack, members: usize) -> anyhow::Result<Chat> {
        let pool = stack.pool().clone();
        let connection = &mut *pool.acquire().await?;
        app::install(connection).await?;
        let (organization, project) = (Uuid::now_v7(), Uuid::now_v7());
        let sql = "with o as (insert into chat.organization values ($1, 'o')) insert into chat.project values ($2, $1, 'p')";
        sqlx::query(sql).bind(organization).bind(project).execute(&mut *connection).await?;
        let mut people = Vec::new();
        for n in 0..members {
            let id = Uuid::now_v7();
            let who = json!({"chat": {"identity": format!("user-{n}")}});
            app::register(connection, id, project, &who).await?;
            people.push(id);
        }
        Ok(Chat { organization, project, members: people, pool })
    }

    /// Opens a conversation with the first `members` people.
    ///
    /// # Errors
    /// The database refuses it.
    pub async fn open(&self, members: usize) -> anyhow::Result<Uuid> {
        let conversation = Uuid::now_v7();
        let connection = &mut *self.pool.acquire().await?;
        app::open_conversation(connection, conversation, self.project, "hello").await?;
        for n in 0..members {
            app::add_member(connection, conversation, self.member(n)?).await?;
        }
        Ok(conversation)
    }

    /// The nth joins.
    ///
    /// # Errors
    /// The conversation is not active, or the database refuses it.
    pub async fn join(&self, conversation: Uuid, n: usize) -> anyhow::Result<Uuid> {
        Ok(app::add_member(&mut *self.pool.acquire().await?, conversation, self.member(n)?).await?)
    }

    /// The nth leaves.
    ///
    /// # Errors
    /// The database refuses it.
    pub async fn leave(&self, conversation: Uuid, n: usize) -> anyhow::Result<bool> {
        Ok(app::remove_member(&mut *self.pool.acquire().await?, conversation, self.member(n)?).await?)
    }

    /// It is put away.
    ///
    /// # Errors
    /// The database refuses it, or it was archived before.
    pub async fn archive(&self, conversation: Uuid) -> anyhow::Result<Uuid> {
        let owed = app::archive_conversation(&mut *self.pool.acquire().await?, conversation).await?;
        owed.context("it was archived before")
    }

    /// It is deleted.
    ///
    /// # Errors
    /// The database refuses it.
    pub async fn delete(&self, conversation: Uuid) -> anyhow::Result<bool> {
        Ok(app::delete_conversation(&mut *self.pool.acquire().await?, conversation).await?)
    }

    /// Asks once more for what was asked for before: an old intent that arrives late.
    ///
    /// # Errors
    /// The database refuses it.
    pub async fn old_intent(&self, kind: &str, conversation: Uuid) -> anyhow::Result<Uuid> {
        let query = sqlx::query_scalar("select chat.owe($1, $2, $3, $4)").bind(kind).bind(conversation);
        Ok(query.bind(self.organization).bind(self.project).fetch_one(&self.pool).await?)
    }

    /// Committed membership of every conversation that is active, as identities by conversation.
    ///
    /// # Errors
    /// The database is out of reach.
    pub async fn committed(&self) -> anyhow::Result<BTreeMap<String, BTreeSet<String>>> {
        let sql = "select c.id::text, coalesce(array_agg(m.who #>> '{chat,identity}') filter (where m.who is not null), '{}')
            from chat.conversation c left join chat.conversation_member m on m.conversation = c.id where c.state = 'active' group by c.id";
        let rows: Vec<(String, Vec<String>)> = sqlx::query_as(sql).fetch_all(&self.pool).await?;
        Ok(rows.into_iter().map(|(id, people)| (id, people.into_iter().collect())).collect())
    }

    fn member(&self, n: usize) -> anyhow::Result<Uuid> {
        self.members.get(n).copied().with_context(|| format!("there is no member {n}"))
    }
}

impl Stack {
    /// Every conversation at the provider, deleted ones included.
    ///
    /// # Errors
    /// The sandbox is down.
    pub fn rooms(&self) -> anyhow::Result<Vec<Room>> {
        let (_, sandbox) =
            self.members().find(|(name, _)| *name == SANDBOX).context("there is no sandbox")?;
        let report: Value =
            serde_json::from_str(&http::must(sandbox.address()?, "GET", "/twilio", &Value::Null)?)?;
        let of = |list: &str, deleted| {
            let rooms = report[list].as_array().cloned().unwrap_or_default();
            rooms.into_iter().map(move |room| Room::read(&room, deleted)).collect::<Vec<_>>()
        };
        Ok(of("conversations", false).into_iter().chain(of("deleted", true)).collect())
    }

    /// The conversation's room at the provider.
    ///
    /// # Errors
    /// There is none, there are several, or the sandbox is down.
    pub fn room(&self, conversation: Uuid) -> anyhow::Result<Room> {
        let mut of: Vec<Room> = self.rooms()?;
        of.retain(|room| room.name == conversation.to_string());
        anyhow::ensure!(of.len() < 2, "one conversation, several rooms: {of:?}");
        of.pop().with_context(|| format!("the provider has no {conversation}"))
    }

    /// Pairs of calls about one conversation that were at the provider at the same time, other than those of a caller
    /// that had given up: a killed worker's last request, one that took longer than its timeout.
    ///
    /// # Errors
    /// A journal line is not JSON.
    pub fn overlapping_calls(&self) -> anyhow::Result<Vec<String>> {
        let journal = self.journal()?;
        let ended =
            || journal.iter().filter(|line| line["provider"] == "twilio" && line["replied"] != "held");
        let given_up: BTreeSet<u64> = ended()
            .filter(|line| line["abandoned"] == true)
            .filter_map(|line| line["seq"].as_u64())
            .collect();
        let mut pairs = Vec::new();
        for line in ended().filter(|line| line["abandoned"] != true) {
            for other in line["overlaps"].as_array().into_iter().flatten().filter_map(Value::as_u64) {
                if !given_up.contains(&other) {
                    pairs.push(format!("{} with {other}: {line}", line["seq"]));
                }
            }
        }
        Ok(pairs)
    }
}

impl Room {
    fn read(room: &Value, deleted: bool) -> Room {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let list = |name: &str| room[name].as_array().cloned().unwrap_or_default();
        Room {
            sid: text(&room["sid"]),
            name: text(&room["unique_name"]),
            states: list("states").iter().map(text).collect(),
            people: list("participants").iter().map(|person| text(&person["identity"])).collect(),
            deleted,
        }
    }
}
