//! The sandbox as these tests use it.

use std::time::Duration;

use backline_failure::{Call, Deadline};
use backline_sandbox::{Action, Config, Fault, FaultFile, Match, Per, Rule, Sandbox, When};
use backline_twilio::{
    Addition, ConversationSid, Creation, NewConversation, NewParticipant, ParticipantSid, Twilio, Who,
    add_participant, create_conversation,
};
use serde_json::Value;
use uuid::Uuid;

use crate::stand_in::twilio;

pub(crate) struct Provider {
    pub(crate) sandbox: Sandbox,
    pub(crate) client: Twilio,
}

impl Provider {
    pub(crate) async fn honest() -> anyhow::Result<Self> {
        let sandbox = Sandbox::start(Config::default()).await?;
        let client = twilio(&sandbox.url())?;
        Ok(Self { sandbox, client })
    }

    /// Hits the next call of this kind.
    pub(crate) fn lie(&self, kind: &str, fault: Fault) {
        let matches = Match { kind: Some(kind.to_owned()), ..Match::default() };
        let rule =
            Rule { name: None, matches, when: When::default(), per: Per::default(), times: Some(1), fault };
        self.sandbox.add_faults(FaultFile { rules: vec![rule], limiter: None });
    }

    pub(crate) fn control(&self, action: Action) {
        self.sandbox.control(action);
    }

    pub(crate) async fn conversation(&self, name: &str) -> anyhow::Result<ConversationSid> {
        match create_conversation(&self.client, &fresh(), &named(name)).await? {
            Creation::Created(made) => Ok(made.sid),
            Creation::NameTaken => anyhow::bail!("{name} is taken"),
        }
    }

    pub(crate) async fn member(
        &self,
        conversation: &ConversationSid,
        identity: &str,
    ) -> anyhow::Result<ParticipantSid> {
        match add_participant(&self.client, &fresh(), conversation, &chat(identity)).await? {
            Addition::Added(member) => Ok(member.sid),
            other => anyhow::bail!("{other:?}"),
        }
    }

    /// The provider's own books: the only conversation.
    pub(crate) fn room(&self) -> Value {
        self.sandbox.twilio()["conversations"][0].clone()
    }

    pub(crate) fn members(&self) -> usize {
        self.room()["participants"].as_array().map_or(0, Vec::len)
    }
}

/// A call of a fresh operation.
pub(crate) fn fresh() -> Call {
    let operation = Uuid::new_v4();
    let minute = Duration::from_secs(60);
    Call::new(operation, 1, 1, 1, format!("{operation}-1-1"), minute, Deadline::after(minute))
}

pub(crate) fn named(name: &str) -> NewConversation {
    NewConversation { unique_name: name.to_owned(), friendly_name: None, attributes: None }
}

pub(crate) fn chat(identity: &str) -> NewParticipant {
    NewParticipant { who: Who::Chat { identity: identity.to_owned() }, attributes: None }
}
