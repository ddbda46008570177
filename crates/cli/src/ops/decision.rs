//! Which decisions may be made about which operation: pure rules.

use anyhow::Context;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

/// What a person wants.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Action {
    Retry,
    Cancel,
    Discard,
    Applied { evidence: Value },
    NotApplied { evidence: Value },
}

/// The operation as it was locked.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Judged {
    pub(crate) kind: String,
    pub(crate) organization: Uuid,
    pub(crate) state: String,
    pub(crate) mode: String,
    pub(crate) submission: i32,
    pub(crate) serial_key: Option<String>,
    pub(crate) failure_class: Option<String>,
    pub(crate) failure_code: Option<String>,
    pub(crate) irreversible: bool,
}

impl Action {
    /// Name in the audit.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Cancel => "cancel",
            Self::Discard => "discard",
            Self::Applied { .. } | Self::NotApplied { .. } => "resolve",
        }
    }

    pub(crate) fn evidence(&self) -> Option<&Value> {
        match self {
            Self::Applied { evidence } | Self::NotApplied { evidence } => Some(evidence),
            _ => None,
        }
    }

    /// State after it, and what comes with it, for the preview.
    pub(crate) fn effect(&self, judged: &Judged) -> (&'static str, String) {
        let released = match &judged.serial_key {
            Some(key) => format!("; serial key {key} goes to the next that waits for it"),
            None => String::new(),
        };
        let next = judged.submission + 1;
        match self {
            Self::Retry => ("ready", "same id and submission, attempts from zero".to_owned()),
            Self::Cancel => match judged.state.as_str() {
                "ready" | "waiting" => {
                    ("cancelled", "a running worker honors the wish within seconds".to_owned())
                }
                _ => ("unchanged", "honored only if it turns out that nothing was applied".to_owned()),
            },
            Self::Discard => ("discarded", format!("it will never run{released}")),
            Self::Applied { .. } => {
                let left = "the handler's follow-up (events, settlement) is not written by this";
                ("succeeded", format!("output is the evidence; {left}{released}"))
            }
            Self::NotApplied { .. } => {
                ("ready", format!("submission {next} with a new key at the provider{released}"))
            }
        }
    }

    /// Why it may not happen, and what to do instead.
    pub(crate) fn refusal(
        &self,
        id: Uuid,
        judged: &Judged,
        actor: &str,
        second: Option<&str>,
    ) -> Option<String> {
        let state = judged.state.as_str();
        let reconcile = judged.mode == "reconcile";
        let refused = match (self, state) {
            (Self::Retry | Self::Discard, "dead") => None,
            // It asked for a person; nothing of it is in doubt.
            (Self::Retry, "manual") if reconcile => None,
            (Self::Discard, "manual") if reconcile => Some(format!(
                "what is wanted cannot be brought about as things are: change what is wanted, mend it there and `backline ops retry {id}`, or \
                 `backline ops resolve {id} --as applied --evidence JSON --reason TEXT` once it is so"
            )),
            (Self::Applied { .. } | Self::NotApplied { .. }, "manual") => None,
            (Self::Cancel, "dead") => Some(format!("nothing runs any more: use `backline ops discard {id}`")),
            (Self::Cancel, _) => None,
            (Self::Retry | Self::Discard, "unknown") => Some(
                "the provider may have acted, so presenting it anew could act twice: it is repeated under the same \
                 key or looked up by itself"
                    .to_owned(),
            ),
            (Self::Retry | Self::Discard, "manual") => Some(format!(
                "the provider may have acted and its lookups cannot tell: find out there, then \
                 `backline ops resolve {id} --as applied|not-applied --evidence JSON --reason TEXT`"
            )),
            (Self::Discard, _) => Some(format!("it is still worked on: use `backline ops cancel {id}`")),
            (Self::Retry, _) => Some(format!("it is tried by itself when due: see `backline explain {id}`")),
            (Self::Applied { .. } | Self::NotApplied { .. }, "unknown") => {
                Some("the runtime is still finding out by itself; only manual operations need a person".to_owned())
            }
            (Self::Applied { .. } | Self::NotApplied { .. }, _) => {
                Some("nobody is in doubt about it; only manual operations need a person".to_owned())
            }
        };
        if let Some(why) = refused {
            return Some(format!("{} is refused for {id}, which is {state}: {why}", self.name()));
        }
        if !judged.irreversible || *self == Self::Cancel {
            return None;
        }
        match second {
            None => Some(format!(
                "--approved-by is required: {} is irreversible and needs a second person",
                judged.kind
            )),
            Some(second) if second.trim().is_empty() || second.trim() == actor.trim() => {
                Some("--approved-by must name another person than --actor".to_owned())
            }
            Some(_) => None,
        }
    }
}

/// Reads `--evidence`.
pub(crate) fn evidence(text: &str) -> anyhow::Result<Value> {
    let value: Value = serde_json::from_str(text).context("--evidence is not JSON")?;
    anyhow::ensure!(
        value.as_object().is_some_and(|facts| !facts.is_empty()),
        "--evidence is not a JSON object with facts"
    );
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::{Action, Judged};
    use serde_json::json;
    use uuid::Uuid;

    fn judged(state: &str, irreversible: bool) -> Judged {
        Judged {
            kind: "stripe.transfer".to_owned(),
            organization: Uuid::nil(),
            state: state.to_owned(),
            mode: "command".to_owned(),
            submission: 1,
            serial_key: None,
            failure_class: None,
            failure_code: None,
            irreversible,
        }
    }

    #[test]
    fn every_state_allows_only_its_own_decisions() {
        let evidence = json!({"id": "tr_1"});
        let actions = [
            Action::Retry,
            Action::Discard,
            Action::Cancel,
            Action::Applied { evidence: evidence.clone() },
            Action::NotApplied { evidence },
        ];
        let allowed = |state: &str| -> Vec<usize> {
            let free =
                |action: &Action| action.refusal(Uuid::nil(), &judged(state, false), "ann", None).is_none();
            (0..actions.len()).filter(|n| free(&actions[*n])).collect()
        };
        assert_eq!(allowed("dead"), [0, 1]);
        assert_eq!(allowed("manual"), [2, 3, 4]);
        for state in ["ready", "waiting", "running", "unknown"] {
            assert_eq!(allowed(state), [2], "{state}");
        }
        let asks = Judged { mode: "reconcile".to_owned(), ..judged("manual", false) };
        assert!(Action::Retry.refusal(Uuid::nil(), &asks, "ann", None).is_none());
        assert!(Action::Discard.refusal(Uuid::nil(), &asks, "ann", None).is_some());
    }

    #[test]
    fn irreversible_kinds_need_another_person() {
        let dead = judged("dead", true);
        let refused = |second| Action::Retry.refusal(Uuid::nil(), &dead, "ann", second).is_some();
        assert!(refused(None) && refused(Some("ann")) && refused(Some(" ")));
        assert!(!refused(Some("bob")));
        assert!(Action::Cancel.refusal(Uuid::nil(), &judged("ready", true), "ann", None).is_none());
    }
}
