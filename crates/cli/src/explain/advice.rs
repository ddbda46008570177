//! Why an operation does not move, and what may safely be done about it: pure.

use super::rows::Open;
use crate::output::span;

/// Why it is where it is.
pub(crate) fn why(open: &Open) -> Vec<String> {
    let mut reasons = Vec::new();
    match open.state.as_str() {
        "ready" if open.due_in_seconds > 0.0 => {
            reasons.push(format!("it is due in {}", span(open.due_in_seconds)));
        }
        "ready" => {
            reasons.push(
                "it is due and waits for a claim: its lane goes round with the other organizations'"
                    .to_owned(),
            );
            if open.lane_due == Some(false) {
                reasons.push(
                    "its lane is not marked due; the workers' backstop heals that within seconds".to_owned(),
                );
            }
        }
        "waiting" if open.waiting_for.as_deref() == Some("capability") => {
            let reads = match open.max_input_version {
                Some(version) => format!("declared workers read up to version {version}"),
                None => "no worker has declared the kind".to_owned(),
            };
            reasons.push(format!(
                "it needs a worker for {} input version {}; {reads}",
                open.kind, open.input_version
            ));
        }
        "waiting" => {
            let key = open.serial_key.as_deref().unwrap_or("-");
            reasons.push(match open.holder {
                Some(holder) => format!("serial key {key} is held by operation {holder}"),
                None => {
                    format!("serial key {key} was free a moment ago; the sweep promotes it within seconds")
                }
            });
        }
        "running" => {
            let owner = open.lease_owner.as_deref().unwrap_or("a lease that is gone");
            let verb = if open.resolving { "asks the provider what happened" } else { "works on it" };
            reasons.push(match open.lease_seconds {
                Some(left) if left >= 0.0 => format!("{owner} {verb}; its lease ends in {}", span(left)),
                Some(over) => format!(
                    "{owner} {verb}, but its lease ended {} ago; the sweep takes it back",
                    span(-over)
                ),
                None => format!("{owner} held it; the sweep takes it back"),
            });
        }
        "unknown" => {
            reasons.push("its request may have reached the provider and nobody knows the answer".to_owned());
            reasons.push(if open.inside_window && open.repeatable && open.lookups == 0 {
                "the same submission is repeated under the same key, which the provider deduplicates"
                    .to_owned()
            } else {
                format!("it is looked up at the provider; {} lookups did not decide so far", open.lookups)
            });
            if let Some(absent) = open.absent_in_seconds.filter(|left| *left > 0.0) {
                reasons.push(format!(
                    "`not there` is believed only in {}, when no request can still be on its way",
                    span(absent)
                ));
            }
        }
        "manual" if open.mode == "reconcile" => {
            reasons.push("no request can bring about what is wanted: a person must decide".to_owned());
        }
        "manual" => {
            reasons.push("lookups cannot decide, or contradict the instruction: a person must".to_owned())
        }
        "dead" => reasons.push(
            "its attempts are spent or its input cannot be read; nothing can have been applied".to_owned(),
        ),
        _ => {}
    }
    reasons.extend(open.pauses.iter().flatten().map(|pause| format!("paused: {pause}")));
    if let Some(left) = open.budget_paused_seconds.filter(|left| *left > 0.0) {
        reasons.push(format!("the provider asked everybody to wait; calls go on in {}", span(left)));
    }
    if let (Some(now), Some(full)) = (open.current_rate, open.full_rate)
        && now < full * 0.5
    {
        reasons.push(format!(
            "the provider throttles: {now:.1} of {full:.1} calls per second for the whole fleet"
        ));
    }
    if open.cancel_requested_at.is_some() {
        reasons.push("a cancel is wished and honored only if nothing was applied".to_owned());
    }
    reasons
}

/// What may be done now without risk.
pub(crate) fn may_do(open: &Open) -> Vec<String> {
    let id = open.id;
    let second = if open.irreversible { " --approved-by SECOND_PERSON" } else { "" };
    match open.state.as_str() {
        "manual" if open.mode == "reconcile" => vec![
            "change what is wanted: the next request for it tries again by itself".to_owned(),
            format!("or mend it at the provider, then backline ops retry {id} --reason TEXT{second}"),
            format!(
                "or, once it is so: backline ops resolve {id} --as applied --evidence '{{…}}' --reason TEXT{second}"
            ),
        ],
        "manual" => vec![
            "find the effect at the provider by its metadata operation_id".to_owned(),
            format!(
                "backline ops resolve {id} --as applied --evidence '{{\"id\": \"…\"}}' --reason TEXT{second}"
            ),
            format!("backline ops resolve {id} --as not-applied --evidence '{{…}}' --reason TEXT{second}"),
        ],
        "dead" => vec![
            format!("mend the cause, then backline ops retry {id} --reason TEXT{second}"),
            format!("or give it up: backline ops discard {id} --reason TEXT{second}"),
        ],
        "unknown" => {
            vec!["nothing: it resolves by itself; submitting anew by hand could act twice".to_owned()]
        }
        "running" => vec!["nothing: it ends, or its lease does".to_owned()],
        _ => {
            let mut advice = Vec::new();
            if open.pauses.as_ref().is_some_and(|pauses| !pauses.is_empty()) {
                advice.push("backline resume workload|provider|organization NAME --reason TEXT".to_owned());
            }
            if let Some(holder) = open.holder.filter(|holder| *holder != id) {
                advice.push(format!("backline explain {holder}"));
            }
            advice
                .push(format!("backline ops cancel {id} --reason TEXT, while nothing can have been applied"));
            advice
        }
    }
}
