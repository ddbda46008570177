//! Creating a conversation under its unique name: the one effect here that is a command. While its reply is missing it
//! is unknown and keeps the conversation's serial key, so nothing else touches what may or may not exist.

use crate::boundary::{About, Timing, attention, serial_key};
use crate::ending::End;
use crate::{deletion::Delete, participants::Participants};
use backline_failure::{Call, Failure, Mode, Resolution};
use backline_runtime::{Command, Conclusion, Error, Evidence, Guard, KindSpec, Operation, Reconcile, Record};
use backline_twilio::{
    ConversationRef, ConversationSid, Creation, NewConversation, Twilio, create_conversation,
    fetch_conversation,
};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use uuid::Uuid;

/// Handler of `twilio.create`.
pub(crate) struct Create {
    pub twilio: Twilio,
    pub timing: Timing,
}

/// Frozen input.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct New {
    /// The application's conversation.
    pub conversation: Uuid,
    /// For people.
    pub name: String,
}

/// What exists now.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Made {
    /// The provider's id.
    pub sid: ConversationSid,
}

impl Create {
    async fn find(&self, call: &Call, new: &New) -> Result<Option<Made>, Failure> {
        let name = ConversationRef::UniqueName(new.conversation.to_string());
        let found = fetch_conversation(&self.twilio, call, &name).await?;
        Ok(found.map(|conversation| Made { sid: conversation.sid }))
    }
}

impl Command for Create {
    const KIND: &'static str = "twilio.create";
    const SERIAL_KEY: Option<fn(&New) -> String> = Some(|new| serial_key(new.conversation));
    type Input = New;
    type Output = Made;

    fn spec(&self) -> KindSpec {
        self.timing.spec(Mode::Command)
    }

    async fn guard(&self, tx: &mut PgConnection, _: &Operation, new: &New) -> Result<Guard, sqlx::Error> {
        let sql = include_str!("../sql/state.sql");
        let row: Option<(String, Option<String>, Option<f64>)> =
            sqlx::query_as(sql).bind(new.conversation).fetch_optional(tx).await?;
        Ok(match row {
            None => Guard::Obsolete { rule: "conversation_deleted", seen: "no row".to_owned() },
            Some((state, ..)) if state != "active" => {
                Guard::Obsolete { rule: "conversation_ended", seen: state }
            }
            Some(_) => Guard::Proceed,
        })
    }

    async fn perform(&self, call: &Call, new: &New) -> Result<Made, Failure> {
        let unique_name = new.conversation.to_string();
        let request =
            NewConversation { unique_name, friendly_name: Some(new.name.clone()), attributes: None };
        match create_conversation(&self.twilio, call, &request).await? {
            Creation::Created(made) => Ok(Made { sid: made.sid }),
            // Ours, from an earlier attempt: nobody else uses our ids as names.
            Creation::NameTaken => self.find(call, new).await?.ok_or_else(|| {
                Failure::transient("twilio.conversation_invisible").with_retry_after(self.timing.lookup_lag())
            }),
        }
    }

    async fn resolve(
        &self,
        call: &Call,
        _operation: &Operation,
        new: &New,
        _evidence: &[Evidence],
    ) -> Result<Resolution<Made>, Failure> {
        Ok(self.find(call, new).await?.map_or(Resolution::NotApplied, Resolution::Applied))
    }

    async fn record(&self, tx: &mut Record<'_>, new: &New, end: Conclusion<'_, Made>) -> Result<(), Error> {
        let made = match end {
            Conclusion::Succeeded(made) => made,
            Conclusion::Rejected { code, .. } => return attention(tx, new.conversation, code).await,
            Conclusion::Obsolete { .. } => return Ok(()),
        };
        let sql = include_str!("../sql/created.sql");
        let row = sqlx::query_scalar(sql).bind(new.conversation).bind(made.sid.as_str());
        let state: Option<String> = row.fetch_optional(tx.connection()).await?;
        let (key, about) = (new.conversation, About { conversation: new.conversation });
        // Whatever was asked for meanwhile found no SID and did nothing: it is asked for again.
        let next = match state.as_deref() {
            Some("active") => Participants::owed(key, &about),
            Some("archived") => End::<true>::owed(key, &about),
            Some(_) => End::<false>::owed(key, &about),
            None if backline_crash_point::seeded_bug(27) => Delete::owed(key, &about),
            None => {
                let late = sqlx::query(include_str!("../sql/created_late.sql"));
                late.bind(new.conversation).bind(made.sid.as_str()).execute(tx.connection()).await?;
                Delete::owed(key, &about)
            }
        };
        tx.owe(next).await?;
        Ok(())
    }
}
