//! Faults on purpose, and how often each fired.

mod plan;

pub use plan::{
    DeadLetterFault, Delay, DeliveryAttempts, DropAcks, Duplicate, FaultPlan, PublishFault, PublishMode,
    Reorder, StreamFault,
};

use crate::codes::code_of;
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tonic::{Code, Status};

struct State {
    plan: FaultPlan,
    random: StdRng,
    acks_seen: u64,
    fired: BTreeMap<&'static str, u64>,
}

/// The current plan. Without one, every question costs a single atomic read.
pub(crate) struct Faults {
    active: AtomicBool,
    state: Mutex<State>,
}

/// How a stream ends.
#[derive(Debug, Clone)]
pub(crate) enum StreamEnd {
    Clean,
    /// HTTP/2 reset without trailers.
    Reset,
    Failed(Status),
}

fn applies(only: Option<&String>, name: &str) -> bool {
    only.is_none_or(|only| only == name)
}

fn spend(times: &mut Option<u64>) -> bool {
    match times {
        None => true,
        Some(0) => false,
        Some(left) => {
            *left -= 1;
            true
        }
    }
}

impl Faults {
    pub(crate) fn new() -> Self {
        let state = State {
            plan: FaultPlan::default(),
            random: StdRng::seed_from_u64(0),
            acks_seen: 0,
            fired: BTreeMap::new(),
        };
        Self { active: AtomicBool::new(false), state: Mutex::new(state) }
    }

    /// Replaces the plan. Codes are checked first, so that a typo is not a fault that never fires.
    pub(crate) fn set(&self, plan: FaultPlan) -> Result<(), Status> {
        for code in plan.publish.iter().map(|f| &f.code) {
            code_of(code).ok_or_else(|| Status::invalid_argument(format!("code: unknown code {code:?}")))?;
        }
        for end in plan.streams.iter().map(|f| &f.end).filter(|end| !["EOF", "RESET"].contains(&end.as_str()))
        {
            code_of(end).ok_or_else(|| Status::invalid_argument(format!("end: unknown code {end:?}")))?;
        }
        let mut state = self.state.lock();
        state.random = StdRng::seed_from_u64(plan.seed.unwrap_or_default());
        state.acks_seen = 0;
        self.active.store(plan != FaultPlan::default(), Ordering::Release);
        state.plan = plan;
        drop(state);
        Ok(())
    }

    /// The plan as it stands (`times` counted down) and how often each fault fired since the start.
    pub(crate) fn snapshot(&self) -> (FaultPlan, BTreeMap<&'static str, u64>) {
        let state = self.state.lock();
        (state.plan.clone(), state.fired.clone())
    }

    fn ask<T>(&self, question: impl FnOnce(&mut State) -> Option<(&'static str, T)>) -> Option<T> {
        if !self.active.load(Ordering::Acquire) {
            return None;
        }
        let mut state = self.state.lock();
        let (name, answer) = question(&mut state)?;
        *state.fired.entry(name).or_default() += 1;
        drop(state);
        Some(answer)
    }

    /// Whether this publish fails, and when.
    pub(crate) fn publish(&self, topic: &str, ordering_key: &str) -> Option<(PublishMode, Status)> {
        self.ask(|state| {
            let rule = state.plan.publish.iter_mut().find(|rule| {
                applies(rule.topic.as_ref(), topic)
                    && applies(rule.ordering_key.as_ref(), ordering_key)
                    && rule.times != Some(0)
            })?;
            spend(&mut rule.times);
            let status =
                Status::new(code_of(&rule.code).unwrap_or(Code::Unavailable), "fault: publish fails");
            let name = match rule.mode {
                PublishMode::Refuse => "publish_refused",
                PublishMode::AcceptThenFail => "publish_accepted_then_failed",
            };
            Some((name, (rule.mode, status)))
        })
    }

    /// Extra copies of a message, and whether they get new ids.
    pub(crate) fn copies(&self, topic: &str) -> Option<(u32, bool)> {
        self.ask(|state| {
            let rule = state.plan.duplicate.as_ref().filter(|rule| applies(rule.topic.as_ref(), topic))?;
            if !state.random.random_bool(rule.probability.clamp(0.0, 1.0)) {
                return None;
            }
            let copies = state.random.random_range(1..=rule.copies.max(1));
            Some(("duplicated", (copies, rule.new_message_id)))
        })
    }

    /// How long a message is held back.
    pub(crate) fn delay(&self, topic: &str) -> Option<Duration> {
        self.ask(|state| {
            let rule = state.plan.delay.as_ref().filter(|rule| applies(rule.topic.as_ref(), topic))?;
            let hit = state.random.random_bool(rule.probability.clamp(0.0, 1.0));
            hit.then_some(("delayed", Duration::from_millis(rule.millis)))
        })
    }

    /// Which of `candidates` waiting messages goes next.
    pub(crate) fn pick(&self, candidates: usize) -> usize {
        self.ask(|state| {
            let window = state.plan.reorder.as_ref()?.window.min(candidates);
            let nth = if window > 1 { state.random.random_range(0..window) } else { 0 };
            (nth > 0).then_some(("reordered", nth))
        })
        .unwrap_or_default()
    }

    /// Whether an acknowledgement is confirmed but not applied.
    pub(crate) fn drops_ack(&self, subscription: &str) -> bool {
        self.ask(|state| {
            let rule =
                state.plan.drop_acks.as_ref().filter(|r| applies(r.subscription.as_ref(), subscription))?;
            let every = rule.every.max(1);
            state.acks_seen += 1;
            (state.acks_seen % every == 0).then_some(("acks_dropped", ()))
        })
        .is_some()
    }

    /// Whether and how a stream that carried `sent` messages ends.
    pub(crate) fn stream_end(&self, subscription: &str, sent: u64) -> Option<StreamEnd> {
        self.ask(|state| {
            let rule = state.plan.streams.iter_mut().find(|rule| {
                applies(rule.subscription.as_ref(), subscription)
                    && rule.times != Some(0)
                    && sent >= rule.after_messages
            })?;
            spend(&mut rule.times);
            let without_code = if rule.end == "RESET" { StreamEnd::Reset } else { StreamEnd::Clean };
            let end = code_of(&rule.end)
                .map_or(without_code, |code| StreamEnd::Failed(Status::new(code, "fault: stream ends")));
            Some(("streams_ended", end))
        })
    }

    /// The delivery attempt to report instead of the real one.
    pub(crate) fn delivery_attempt(&self, subscription: &str) -> Option<i32> {
        self.ask(|state| {
            let rule = state.plan.delivery_attempts.as_mut()?;
            if !applies(rule.subscription.as_ref(), subscription) || rule.values.is_empty() {
                return None;
            }
            Some(("delivery_attempts_scripted", rule.values.remove(0)))
        })
    }

    /// Shift of the dead-letter policy's attempts.
    pub(crate) fn dead_letter_shift(&self) -> i32 {
        if !self.active.load(Ordering::Acquire) {
            return 0;
        }
        self.state.lock().plan.dead_letter.as_ref().map_or(0, |rule| rule.shift)
    }

    /// Counts messages whose dead-lettering was shifted.
    pub(crate) fn count_shifted(&self, messages: u64) {
        *self.state.lock().fired.entry("dead_letter_shifted").or_default() += messages;
    }

    /// How often a message is published to the dead-letter topic.
    pub(crate) fn dead_letter_copies(&self) -> u32 {
        self.ask(|state| {
            let copies = state.plan.dead_letter.as_ref()?.copies;
            (copies != 1).then_some(("dead_letter_copied", copies))
        })
        .unwrap_or(1)
    }
}
