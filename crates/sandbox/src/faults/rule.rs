//! When a fault fires: which calls match, and which of those are hit.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::Fault;

/// One lie the sandbox is told to tell.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Shown in `GET /faults`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Which calls count. Everything left out matches.
    #[serde(default, rename = "match")]
    pub matches: Match,
    /// Which of the counted calls are hit. Everything left out hits.
    #[serde(default)]
    pub when: When,
    /// What calls are counted over.
    #[serde(default)]
    pub per: Per,
    /// Total number of hits; `None` is without end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
    /// What happens to a call that is hit.
    pub fault: Fault,
}

/// Conditions on a call; all given ones must hold.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Match {
    /// `stripe` or `twilio`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// What the call does, as in the journal: `transfer`, `participant.add`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// `GET`, `POST` or `DELETE`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Prefix of the path, such as `/v1/transfers`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// `metadata[operation_id]`, or the `transfer_group` filter of a list call; at Twilio `X-Backline-Operation`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_id: Option<String>,
    /// `Idempotency-Key` header; at Twilio the conversation's SID.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// `Stripe-Account` header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Secret key of the call, to expire one credential while another works.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key: Option<String>,
}

/// Which counted calls are hit; counting starts at 1 and all given conditions must hold.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct When {
    /// Exactly these calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nth: Option<Vec<u64>>,
    /// The first so many calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<u64>,
    /// Calls after the first so many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// Every so-manieth call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<u64>,
    /// Share of calls between 0 and 1, decided by (seed, rule, counted thing, count) alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
}

/// What a rule's counter counts over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Per {
    /// One counter for the rule.
    #[default]
    Rule,
    /// One counter per operation id (per key where a call names no operation).
    Operation,
    /// One counter per idempotency key; at Twilio per conversation.
    Key,
}

/// What rules may look at in a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts<'a> {
    pub(crate) provider: &'a str,
    pub(crate) kind: Option<&'a str>,
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) operation_id: Option<&'a str>,
    pub(crate) key: Option<&'a str>,
    pub(crate) account: Option<&'a str>,
    pub(crate) api_key: Option<&'a str>,
}

/// A rule with its counters.
#[derive(Debug)]
pub(crate) struct Armed {
    pub(crate) id: u64,
    pub(crate) rule: Rule,
    pub(crate) matched: u64,
    pub(crate) fired: u64,
    counts: HashMap<String, u64>,
}

impl Armed {
    pub(crate) fn new(id: u64, rule: Rule) -> Self {
        Self { id, rule, matched: 0, fired: 0, counts: HashMap::new() }
    }

    /// Counts the call and says whether it is hit.
    pub(crate) fn hits(&mut self, facts: &Facts<'_>, seed: u64) -> bool {
        if self.rule.times.is_some_and(|times| self.fired >= times) || !self.rule.matches.holds(facts) {
            return false;
        }
        self.matched += 1;
        let counted = match self.rule.per {
            Per::Rule => "",
            Per::Operation => facts.operation_id.or(facts.key).unwrap_or_default(),
            Per::Key => facts.key.unwrap_or_default(),
        };
        let count = match self.counts.get_mut(counted) {
            Some(count) => {
                *count += 1;
                *count
            }
            None => {
                self.counts.insert(counted.to_owned(), 1);
                1
            }
        };
        let hit = self.rule.when.holds(count, || chance(seed, self.id, counted, count));
        self.fired += u64::from(hit);
        hit
    }
}

impl Match {
    fn holds(&self, facts: &Facts<'_>) -> bool {
        let same = |wanted: &Option<String>, seen: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| seen == Some(wanted))
        };
        self.method.as_deref().is_none_or(|wanted| wanted.eq_ignore_ascii_case(facts.method))
            && self.path.as_deref().is_none_or(|prefix| facts.path.starts_with(prefix))
            && same(&self.provider, Some(facts.provider))
            && same(&self.kind, facts.kind)
            && same(&self.operation_id, facts.operation_id)
            && same(&self.key, facts.key)
            && same(&self.account, facts.account)
            && same(&self.api_key, facts.api_key)
    }
}

impl When {
    fn holds(&self, count: u64, chance: impl FnOnce() -> f64) -> bool {
        self.nth.as_ref().is_none_or(|nth| nth.contains(&count))
            && self.first.is_none_or(|first| count <= first)
            && self.after.is_none_or(|after| count > after)
            && self.every.is_none_or(|every| every > 0 && count.is_multiple_of(every))
            && self.probability.is_none_or(|share| chance() < share)
    }
}

/// A number in [0, 1) that depends on its arguments only, so that the order in which concurrent calls
/// arrive does not change who is hit.
fn chance(seed: u64, rule: u64, counted: &str, count: u64) -> f64 {
    // FNV-1a over the text, then the finalizer of SplitMix64: public constants of both.
    let text = counted.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let mut x =
        text ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ rule.rotate_left(32) ^ count.rotate_left(17);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^= x >> 31;
    // 32 bits are plenty for a share and convert without loss.
    f64::from(u32::try_from(x >> 32).unwrap_or(u32::MAX)) / 4_294_967_296.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_is_repeatable_and_roughly_uniform() {
        let share = |seed| (0..10_000).filter(|n| chance(seed, 1, "op", *n) < 0.3).count();
        assert_eq!(share(7), share(7));
        assert!((2_700..3_300).contains(&share(7)), "{}", share(7));
        assert!((0..100).any(|n| (chance(1, 1, "op", n) < 0.5) != (chance(2, 1, "op", n) < 0.5)));
    }
}
