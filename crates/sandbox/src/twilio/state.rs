//! The stand-in's state, how it comes back from the journal, and what may be done to it from outside.

use std::collections::HashMap;

use super::change::{Change, Conversation, Participant, State};
use super::sid;
use super::world::World;
use crate::config::Config;
use crate::control::{Action, ConversationState};
use crate::journal::Line;

#[derive(Debug)]
pub(crate) struct Twilio {
    pub(crate) world: World,
    /// Accepted `SK…:secret`; empty accepts all that look like one.
    pub(crate) api_keys: Vec<String>,
    /// Default invisibility of what is new.
    pub(crate) lookup_lag_ms: i64,
    /// Numbers of the held calls about each conversation.
    in_flight: HashMap<String, Vec<u64>>,
}

impl Twilio {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            world: World::default(),
            api_keys: config.api_keys.iter().filter(|key| key.starts_with("SK")).cloned().collect(),
            lookup_lag_ms: crate::duration::millis(config.lookup_lag),
            in_flight: HashMap::new(),
        }
    }

    /// Repeats what a journal line did.
    ///
    /// # Errors
    /// A line with a change that this build does not know.
    pub(crate) fn restore(&mut self, line: &Line) -> Result<(), serde_json::Error> {
        let Some(change) = &line.change else { return Ok(()) };
        if line.method == "CONTROL" {
            self.act(&serde_json::from_value(change.clone())?);
        } else if line.provider.as_deref() == Some(super::PROVIDER) {
            self.world.apply(serde_json::from_value(change.clone())?);
        }
        Ok(())
    }

    /// Carries out a control action; the answer is how many things it touched that only Twilio has.
    pub(crate) fn act(&mut self, action: &Action) -> usize {
        let change = match action {
            Action::ClockForward { by } => {
                self.world.clock.shift(crate::duration::millis(*by));
                None
            }
            Action::ClockBack { by } => {
                self.world.clock.shift(-crate::duration::millis(*by));
                None
            }
            Action::Conversation { id, becomes, at_ms } => self.turned(id, *becomes, at_ms.unwrap_or(0)),
            Action::Participant { conversation, identity, present, at_ms } => {
                self.moved(conversation, identity, *present, at_ms.unwrap_or(0))
            }
            _ => None,
        };
        let touched = usize::from(change.is_some());
        if let Some(change) = change {
            self.world.apply(change);
        }
        touched
    }

    fn turned(&self, id: &str, becomes: ConversationState, at_ms: i64) -> Option<Change> {
        let is = self.world.find(id)?.is.clone();
        Some(match State::from_outside(becomes) {
            Some(state) => Change::Conversation { is: Conversation { state, updated_ms: at_ms, ..is } },
            None => Change::ConversationDeleted { conversation: is.sid, at_ms },
        })
    }

    fn moved(&self, conversation: &str, identity: &str, present: bool, at_ms: i64) -> Option<Change> {
        let room = self.world.find(conversation)?;
        let member = room.members.iter().find(|member| member.identity.as_deref() == Some(identity));
        let conversation = room.is.sid.clone();
        match (member, present) {
            (None, true) => {
                let n = self.world.next_number();
                let is = Participant {
                    n,
                    sid: sid("MB", n),
                    identity: Some(identity.to_owned()),
                    pair: None,
                    attributes: "{}".to_owned(),
                    role_sid: None,
                    created_ms: at_ms,
                    visible_ms: at_ms,
                };
                Some(Change::Joined { conversation, is })
            }
            (Some(member), false) => {
                Some(Change::Left { conversation, participant: member.sid.clone(), shown_until_ms: at_ms })
            }
            _ => None,
        }
    }

    /// Held calls about a conversation.
    pub(crate) fn in_flight(&self, conversation: Option<&str>) -> Vec<u64> {
        conversation.and_then(|sid| self.in_flight.get(sid)).cloned().unwrap_or_default()
    }

    pub(crate) fn took_off(&mut self, conversation: &str, seq: u64) {
        self.in_flight.entry(conversation.to_owned()).or_default().push(seq);
    }

    pub(crate) fn landed(&mut self, conversation: &str, seq: u64) {
        if let Some(calls) = self.in_flight.get_mut(conversation) {
            calls.retain(|call| *call != seq);
        }
    }
}
