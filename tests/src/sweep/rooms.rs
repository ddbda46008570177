//! A producer of conversations: the example application on a bench, with the Twilio worker in place of payments.

use crate::programs::{TWILIO, local};
use crate::sweep::{Bench, Intended};
use crate::{Chat, Ready};
use anyhow::Context;
use backline_dev_cluster::process::free_port;
use std::collections::VecDeque;
use uuid::Uuid;

/// People of the bench's one project; who is in which conversation follows from what was done to it.
const PEOPLE: usize = 3;

/// Active conversations that a set of changes takes its objects from.
const STOCK: usize = 3;

/// One thing that an application does to a conversation. Each leads to exactly one kind of writing request, and no
/// other conversation is touched, so that the first request of a worker is known before it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// A new one, with nobody in it: `conversation.create`.
    Open,
    /// Somebody joins: `participant.add`.
    Join,
    /// Somebody leaves: `participant.remove`.
    Leave,
    /// It is put away: `conversation.update`.
    Archive,
    /// It is deleted: `conversation.delete`.
    Delete,
}

impl Change {
    /// Every kind of writing request that the worker makes.
    pub const ALL: [Change; 5] = [Self::Open, Self::Join, Self::Leave, Self::Archive, Self::Delete];

    /// What the provider's journal calls the request.
    #[must_use]
    pub fn request(self) -> &'static str {
        match self {
            Self::Open => "conversation.create",
            Self::Join => "participant.add",
            Self::Leave => "participant.remove",
            Self::Archive => "conversation.update",
            Self::Delete => "conversation.delete",
        }
    }
}

/// The application and what it has done.
pub(super) struct Rooms {
    chat: Chat,
    /// The oldest first; the first has been changed already when it is deleted.
    active: VecDeque<Uuid>,
    archived: VecDeque<Uuid>,
    /// Operations that commits of the application asked for.
    pub(super) owed: Vec<Uuid>,
}

impl Rooms {
    fn owe(&mut self, kind: &str, key: &str) {
        let id = Intended::new(self.chat.organization, kind, key, "succeeded").operation();
        if !self.owed.contains(&id) {
            self.owed.push(id);
        }
    }

    async fn open(&mut self, members: usize) -> anyhow::Result<Uuid> {
        let conversation = self.chat.open(members).await?;
        self.owe("twilio.create", &conversation.to_string());
        self.active.push_back(conversation);
        Ok(conversation)
    }

    async fn join(&mut self, conversation: Uuid, n: usize) -> anyhow::Result<()> {
        self.chat.join(conversation, n).await?;
        self.owe("twilio.participants", &conversation.to_string());
        Ok(())
    }

    async fn leave(&mut self, conversation: Uuid, n: usize) -> anyhow::Result<()> {
        anyhow::ensure!(self.chat.leave(conversation, n).await?, "user-{n} is no member of {conversation}");
        let who = format!("{{\"chat\": {{\"identity\": \"user-{n}\"}}}}");
        self.owe("twilio.remove_participant", &format!("{conversation}/{who}"));
        self.owe("twilio.participants", &conversation.to_string());
        Ok(())
    }

    async fn archive(&mut self, conversation: Uuid) -> anyhow::Result<()> {
        self.chat.archive(conversation).await?;
        self.owe("twilio.archive_close", &conversation.to_string());
        self.archived.push_back(conversation);
        Ok(())
    }

    async fn delete(&mut self, conversation: Uuid) -> anyhow::Result<()> {
        anyhow::ensure!(self.chat.delete(conversation).await?, "{conversation} is gone already");
        self.owe("twilio.delete", &conversation.to_string());
        Ok(())
    }

    fn take(&mut self) -> anyhow::Result<Uuid> {
        self.active.pop_front().context("no conversation is left")
    }
}

impl Bench {
    /// Creates the application's tables and people.
    ///
    /// # Errors
    /// The database refuses it.
    pub async fn install_rooms(&mut self) -> anyhow::Result<()> {
        let chat = Chat::install(self.parts(), PEOPLE).await?;
        self.rooms =
            Some(Rooms { chat, active: VecDeque::new(), archived: VecDeque::new(), owed: Vec::new() });
        Ok(())
    }

    /// Adds a Twilio worker that is not started yet.
    ///
    /// # Errors
    /// The program is missing.
    pub fn add_twilio(&mut self, name: &str, env: &[(&str, String)]) -> anyhow::Result<()> {
        let health = local(free_port()?);
        let mut settings = self.quick_worker(health);
        settings.extend([
            ("TWILIO_REQUEST_TIMEOUT", "795ms".to_owned()),
            ("TWILIO_LINGER", "400ms".to_owned()),
            ("TWILIO_LOOKUP_LAG", "200ms".to_owned()),
        ]);
        self.add(name, TWILIO, settings, env, Ready::Answers(health))
    }

    /// Opens what the next changes need, with two people each, and waits for rest. Needs a running worker.
    ///
    /// # Errors
    /// It does not settle.
    pub async fn stock(&mut self) -> anyhow::Result<()> {
        let rooms = self.rooms()?;
        let archived = usize::from(rooms.archived.is_empty());
        while rooms.active.len() < STOCK + archived {
            rooms.open(2).await?;
        }
        self.settled().await?;
        if archived == 1 {
            self.change(Change::Archive).await?;
        }
        self.settled().await
    }

    /// One change to a conversation of its own; the answer is which.
    ///
    /// # Errors
    /// The database refuses it.
    pub async fn change(&mut self, change: Change) -> anyhow::Result<Uuid> {
        let rooms = self.rooms()?;
        let conversation = match change {
            // Without people it is no stock for the next.
            Change::Open => {
                let conversation = rooms.open(0).await?;
                rooms.active.pop_back();
                return Ok(conversation);
            }
            // The newest: nothing has been changed in it yet.
            _ => rooms.active.pop_back().context("no conversation is left")?,
        };
        match change {
            Change::Open => {}
            Change::Join => rooms.join(conversation, 2).await?,
            Change::Leave => rooms.leave(conversation, 0).await?,
            Change::Archive => rooms.archive(conversation).await?,
            Change::Delete => rooms.delete(conversation).await?,
        }
        Ok(conversation)
    }

    /// The application changes its mind about a [`Bench::change`].
    ///
    /// # Errors
    /// The database refuses it, or there is no way back.
    pub async fn undo(&mut self, change: Change, conversation: Uuid) -> anyhow::Result<()> {
        let rooms = self.rooms()?;
        match change {
            Change::Open => rooms.delete(conversation).await,
            Change::Join => rooms.leave(conversation, 2).await,
            Change::Leave => rooms.join(conversation, 0).await,
            Change::Archive => {
                rooms.archived.retain(|archived| *archived != conversation);
                rooms.delete(conversation).await
            }
            Change::Delete => anyhow::bail!("what is deleted does not come back"),
        }
    }

    /// Commits one set: two conversations are opened, in one somebody joins and somebody leaves, one is archived, and two
    /// are deleted, of which one was archived before. All kinds of requests and of follow-up work come of it.
    ///
    /// # Errors
    /// The database refuses it.
    pub async fn converse(&mut self) -> anyhow::Result<()> {
        let rooms = self.rooms()?;
        let (deleted, archived) = (rooms.take()?, rooms.take()?);
        let changed = *rooms.active.front().context("no conversation is left")?;
        let put_away = rooms.archived.pop_front().context("none was archived before")?;
        rooms.open(2).await?;
        rooms.open(1).await?;
        rooms.leave(changed, 0).await?;
        rooms.join(changed, 2).await?;
        rooms.archive(archived).await?;
        rooms.delete(deleted).await?;
        rooms.delete(put_away).await
    }

    /// Asks again for what is long so: an old intent.
    ///
    /// # Errors
    /// The database refuses it.
    pub async fn ask_again(&mut self, conversation: Uuid) -> anyhow::Result<Uuid> {
        self.rooms()?.chat.old_intent("twilio.participants", conversation).await
    }

    /// The conversation that the next [`Bench::change`] is about.
    ///
    /// # Errors
    /// There is none.
    pub fn newest(&self) -> anyhow::Result<Uuid> {
        let rooms = self.rooms.as_ref().context("this bench has no conversations")?;
        rooms.active.back().copied().context("no conversation is left")
    }

    /// The operation of a kind about a conversation.
    ///
    /// # Errors
    /// This bench has no conversations.
    pub fn operation_about(&self, kind: &str, conversation: Uuid) -> anyhow::Result<Uuid> {
        let rooms = self.rooms.as_ref().context("this bench has no conversations")?;
        let key = conversation.to_string();
        Ok(Intended::new(rooms.chat.organization, kind, &key, "succeeded").operation())
    }

    fn rooms(&mut self) -> anyhow::Result<&mut Rooms> {
        self.rooms.as_mut().context("this bench has no conversations")
    }
}
