//! Everything the stand-in remembers. Changes only through `apply`, so that replaying the journal's changes in order
//! gives the same state.

use std::collections::{BTreeMap, HashMap};

use super::change::{Change, Conversation, Participant, State};
use crate::clock::Clock;

/// A conversation with everybody in it.
#[derive(Debug)]
pub(crate) struct Room {
    pub(crate) is: Conversation,
    /// In order of joining.
    pub(crate) members: Vec<Participant>,
    /// Left, but still listed until the given time.
    pub(crate) leaving: Vec<(Participant, i64)>,
    /// Every state it was written to, the first included; a reopening is an `active` after something else.
    pub(crate) states: Vec<State>,
}

/// What remains of a deleted conversation.
#[derive(Debug)]
pub(crate) struct Grave {
    pub(crate) room: Room,
    pub(crate) at_ms: i64,
}

#[derive(Debug, Default)]
pub(crate) struct World {
    pub(crate) clock: Clock,
    /// By number, which is the order of creation.
    pub(crate) rooms: BTreeMap<u64, Room>,
    pub(crate) graves: Vec<Grave>,
    by_sid: HashMap<String, u64>,
    by_name: HashMap<String, u64>,
    last_number: u64,
}

impl Room {
    /// The state as timers have left it.
    pub(crate) fn state(&self, now_ms: i64) -> State {
        let passed = |after: Option<i64>| after.is_some_and(|after| now_ms >= self.is.updated_ms + after);
        match self.is.state {
            State::Closed => State::Closed,
            _ if passed(self.is.closed_after_ms) => State::Closed,
            State::Active if passed(self.is.inactive_after_ms) => State::Inactive,
            state => state,
        }
    }
}

impl World {
    /// The number that the next new object will get. It is taken by `apply`.
    pub(crate) fn next_number(&self) -> u64 {
        self.last_number + 1
    }

    /// By SID or unique name, visible or not.
    pub(crate) fn find(&self, id: &str) -> Option<&Room> {
        self.rooms.get(self.by_sid.get(id).or_else(|| self.by_name.get(id))?)
    }

    /// Makes a change true.
    pub(crate) fn apply(&mut self, change: Change) {
        match change {
            Change::Conversation { is } => self.put(is),
            Change::ConversationDeleted { conversation, at_ms } => {
                let Some(n) = self.by_sid.remove(&conversation) else { return };
                let Some(room) = self.rooms.remove(&n) else { return };
                if let Some(name) = &room.is.unique_name {
                    self.by_name.remove(name);
                }
                self.graves.push(Grave { room, at_ms });
            }
            Change::Joined { conversation, is } => {
                self.last_number = self.last_number.max(is.n);
                if let Some(room) = self.room_mut(&conversation) {
                    room.members.push(is);
                }
            }
            Change::Left { conversation, participant, shown_until_ms } => {
                let Some(room) = self.room_mut(&conversation) else { return };
                if let Some(at) = room.members.iter().position(|member| member.sid == participant) {
                    let member = room.members.remove(at);
                    room.leaving.push((member, shown_until_ms));
                }
            }
        }
    }

    fn put(&mut self, is: Conversation) {
        self.last_number = self.last_number.max(is.n);
        let known = self.rooms.get(&is.n).and_then(|room| room.is.unique_name.clone());
        if let Some(name) = known {
            self.by_name.remove(&name);
        }
        if let Some(name) = &is.unique_name {
            self.by_name.insert(name.clone(), is.n);
        }
        self.by_sid.insert(is.sid.clone(), is.n);
        match self.rooms.get_mut(&is.n) {
            Some(room) => {
                if room.is.state != is.state {
                    room.states.push(is.state);
                }
                room.is = is;
            }
            None => {
                let states = vec![is.state];
                self.rooms.insert(is.n, Room { is, members: Vec::new(), leaving: Vec::new(), states });
            }
        }
    }

    fn room_mut(&mut self, sid: &str) -> Option<&mut Room> {
        self.rooms.get_mut(self.by_sid.get(sid)?)
    }
}
