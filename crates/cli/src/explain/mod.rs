//! `backline explain`: the story of one event, operation or provider reference.

mod advice;
mod event;
mod operation;
mod rows;

use crate::Verdict;
use crate::args::ExplainArgs;
use crate::output::Output;
use crate::pubsub::PubsubArgs;
use event::{EventStory, Topic};
pub(crate) use operation::OperationStory;
use serde::Serialize;
use sqlx::PgPool;
use uuid::Uuid;

/// Everything found under one subject.
#[derive(Debug, Serialize)]
pub(crate) struct Story {
    subject: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<EventStory>,
    operations: Vec<OperationStory>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

/// The search has no index; people should know why a large installation takes its time.
const SEARCHED: &str = "found by reading outputs, keys and evidence of every kept partition: with much history prefer \
                        an event or operation id";

/// Tells what is known of `subject`.
pub(crate) async fn run(pool: &PgPool, args: &ExplainArgs, output: &Output) -> anyhow::Result<Verdict> {
    let subject = args.subject.trim();
    anyhow::ensure!(
        !subject.is_empty(),
        "the subject is empty: give an event id, an operation id, a provider reference, an operation key or an aggregate id"
    );
    let mut story = tell(pool, subject).await?;
    story.ask_broker(&args.pubsub).await;
    output.answer(&story, || story.page())?;
    Ok(Verdict::Good)
}

/// Gathers what is known of `subject`.
pub(crate) async fn tell(pool: &PgPool, subject: &str) -> anyhow::Result<Story> {
    let mut story = Story { subject: subject.to_owned(), event: None, operations: Vec::new(), note: None };
    if let Ok(id) = subject.parse::<Uuid>() {
        story.event = EventStory::load(pool, id).await?;
        let ids = match &story.event {
            Some(event) => event.caused_ids(),
            None => vec![id],
        };
        for id in ids {
            story.operations.extend(OperationStory::load(pool, id).await?);
        }
    }
    if story.event.is_none() && story.operations.is_empty() {
        story.note = Some(SEARCHED);
        for id in sqlx::query_file_scalar!("sql/find_reference.sql", subject).fetch_all(pool).await? {
            match OperationStory::load(pool, id).await? {
                Some(operation) => story.operations.push(operation),
                None if story.event.is_none() => story.event = EventStory::load(pool, id).await?,
                None => {}
            }
        }
        story.tell_cause(pool).await?;
    }
    anyhow::ensure!(
        story.event.is_some() || !story.operations.is_empty(),
        "{subject} is no event, operation, correlation, key or provider reference that is still kept here"
    );
    Ok(story)
}

impl Story {
    /// Whether the topic that a waiting event names exists is known only to the broker, if one is named here.
    async fn ask_broker(&mut self, pubsub: &PubsubArgs) {
        let Some(event) = &mut self.event else { return };
        let Some(topic) = event.waits_for() else { return };
        if !pubsub.is_given() {
            return event.set_topic(Topic::Unasked);
        }
        let answer = async { anyhow::Ok(pubsub.connect().await?.has_topic(&topic).await?) }.await;
        event.set_topic(match answer {
            Ok(true) => Topic::There,
            Ok(false) => Topic::Missing,
            Err(error) => Topic::Unseen(format!("{error:#}")),
        });
    }

    /// Adds the event behind operations that were found without it.
    async fn tell_cause(&mut self, pool: &PgPool) -> anyhow::Result<()> {
        if self.event.is_some() {
            return Ok(());
        }
        for cause in self.operations.iter().filter_map(OperationStory::causation) {
            self.event = EventStory::load(pool, cause).await?;
            if self.event.is_some() {
                break;
            }
        }
        Ok(())
    }

    /// One page for people.
    pub(crate) fn page(&self) -> String {
        let mut parts: Vec<String> = self.event.iter().map(EventStory::page).collect();
        parts.extend(self.operations.iter().map(OperationStory::page));
        parts.extend(self.note.map(|note| format!("note: {note}")));
        parts.join("\n\n")
    }
}
