//! Lies: which calls are refused, lost, delayed or answered wrongly. Knows nothing of any provider's objects.

mod distort;
mod fault;
mod limiter;
mod rule;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use fault::{BadText, Fault, RetryAfter};
pub use limiter::LimiterRule;
pub use rule::{Match, Per, Rule, When};

pub(crate) use distort::{Envelope, distort, instead};
pub(crate) use limiter::Limited;
use limiter::Limiter;
use rule::Armed;
pub(crate) use rule::Facts;

/// Contents of a `--faults` file and of a `POST /faults` body.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FaultFile {
    /// Evaluated in order.
    pub rules: Vec<Rule>,
    /// Looks at the calls that no rule hit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limiter: Option<LimiterRule>,
}

/// A later contradiction of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Becomes {
    pub(crate) status: String,
    pub(crate) at_ms: i64,
    pub(crate) code: Option<String>,
}

/// What was decided for one call.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) delay: Option<Duration>,
    pub(crate) hide: Option<Duration>,
    pub(crate) becomes: Option<(String, Duration, Option<String>)>,
    pub(crate) main: Option<Fault>,
    /// The limiter's 429.
    pub(crate) limited: Option<Limited>,
    /// Name or id of the rule behind `main`, for the journal.
    pub(crate) rule: Option<String>,
}

/// Armed rules, the limiter and their counters.
#[derive(Debug)]
pub(crate) struct Faults {
    seed: u64,
    next_id: u64,
    rules: Vec<Armed>,
    limiter: Option<Limiter>,
}

impl Faults {
    pub(crate) fn new(seed: u64, file: FaultFile) -> Self {
        let mut faults = Self { seed, next_id: 1, rules: Vec::new(), limiter: None };
        faults.add(file);
        faults
    }

    /// Arms rules after the present ones and returns their ids.
    pub(crate) fn add(&mut self, file: FaultFile) -> Vec<u64> {
        if let Some(rule) = file.limiter {
            self.limiter = Some(Limiter::new(rule));
        }
        let mut ids = Vec::with_capacity(file.rules.len());
        for rule in file.rules {
            ids.push(self.next_id);
            self.rules.push(Armed::new(self.next_id, rule));
            self.next_id += 1;
        }
        ids
    }

    /// Removes one rule, or everything including the limiter.
    pub(crate) fn clear(&mut self, id: Option<u64>) -> usize {
        let before = self.rules.len();
        match id {
            Some(id) => self.rules.retain(|armed| armed.id != id),
            None => {
                self.rules.clear();
                self.limiter = None;
            }
        }
        before - self.rules.len()
    }

    /// Counts a call and decides what happens to it; `held` calls are waiting meanwhile. At most one fault that replaces the outcome is chosen.
    pub(crate) fn plan(&mut self, facts: &Facts<'_>, held: u64) -> Plan {
        let mut plan = Plan::default();
        for armed in &mut self.rules {
            let modifies =
                matches!(armed.rule.fault, Fault::Slow { .. } | Fault::Hide { .. } | Fault::Becomes { .. });
            if (!modifies && plan.main.is_some()) || !armed.hits(facts, self.seed) {
                continue;
            }
            match &armed.rule.fault {
                Fault::Slow { delay } => plan.delay = Some(*delay),
                Fault::Hide { span } => plan.hide = Some(*span),
                Fault::Becomes { status, after, code } => {
                    plan.becomes = Some((status.clone(), *after, code.clone()));
                }
                fault => {
                    plan.main = Some(fault.clone());
                    plan.rule = Some(armed.rule.name.clone().unwrap_or_else(|| format!("#{}", armed.id)));
                }
            }
        }
        if plan.main.is_none() {
            plan.limited = self.limiter.as_mut().and_then(|limiter| limiter.refuse(facts, held));
        }
        plan
    }

    /// Lets every rate through again.
    pub(crate) fn clear_limiter(&mut self) -> usize {
        usize::from(self.limiter.take().is_some())
    }

    /// Hits per rule, in the order of arming.
    pub(crate) fn fired(&self) -> Vec<u64> {
        self.rules.iter().map(|armed| armed.fired).collect()
    }

    /// Body of `GET /faults`.
    pub(crate) fn report(&self) -> Value {
        let rules: Vec<Value> = self
            .rules
            .iter()
            .map(|armed| {
                json!({"id": armed.id, "rule": armed.rule, "matched": armed.matched, "fired": armed.fired})
            })
            .collect();
        json!({"seed": self.seed, "rules": rules, "limiter": self.limiter.as_ref().map(Limiter::report)})
    }
}
