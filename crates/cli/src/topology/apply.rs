//! Making what is declared true, as far as that loses nothing.

use super::diff::{explained, values};
use crate::Verdict;
use crate::output::Output;
use crate::pubsub::PubsubArgs;
use backline_broker::{Mended, Resource, Topology};
use serde::Serialize;

/// What was done, and what was not.
#[derive(Debug, Default, Serialize)]
struct Applied {
    done: Vec<Mended>,
    /// What to do about each subscription with a field that is fixed at creation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    advice: Vec<String>,
    /// Why it ended early. What was done before is in `done`; applying again goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

pub(super) async fn run(pubsub: &PubsubArgs, wanted: &Topology, output: &Output) -> anyhow::Result<Verdict> {
    let broker = pubsub.connect().await?;
    let mut applied = Applied::default();
    for difference in broker.compare(wanted).await.map_err(|error| explained(&error))? {
        match broker.mend(wanted, &difference).await {
            Ok(mended) => {
                applied.advice.extend(advice(pubsub, wanted, &mended));
                applied.done.push(mended);
            }
            Err(error) => {
                applied.error = Some(explained(&error).to_string());
                break;
            }
        }
    }
    output.answer(&applied, || page(&applied))?;
    let whole = applied.advice.is_empty() && applied.error.is_none();
    Ok(if whole { Verdict::Good } else { Verdict::Bad })
}

fn page(applied: &Applied) -> String {
    let mut lines = Vec::new();
    for one in &applied.done {
        let head = format!("{} {}", one.resource.as_str(), one.id);
        if one.created {
            lines.push(format!("created  {head}"));
        }
        lines.extend(one.updated.iter().map(|field| {
            format!("updated  {head}: {} from {} to {}", field.field, field.actual, field.declared)
        }));
        lines.extend(one.refused.iter().map(|field| format!("REFUSED  {head}: {}", values(field))));
    }
    lines.extend(applied.advice.iter().map(|advice| format!("do: {advice}")));
    lines.extend(
        applied.error.iter().map(|error| format!("ENDED EARLY: {error}; apply again when that is mended")),
    );
    if lines.is_empty() {
        lines.push("nothing to do: everything is as declared".to_owned());
    }
    lines.join("\n")
}

/// The safe way for what Pub/Sub fixes at creation.
fn advice(pubsub: &PubsubArgs, wanted: &Topology, mended: &Mended) -> Option<String> {
    if mended.refused.is_empty() {
        return None;
    }
    let fields: Vec<&str> = mended.refused.iter().map(|field| field.field).collect();
    let id = &mended.id;
    let delete = pubsub.deletion(Resource::Subscription, id);
    let dead = wanted.subscriptions.iter().filter_map(|spec| spec.dead_letter.as_ref());
    let kept = dead.into_iter().any(|dead| dead.kept_in() == *id);
    let warning = if kept {
        "It keeps dead letters: deal with them first, deleting it loses them."
    } else {
        "What was not acknowledged yet goes with it, and is offered again BACKLINE_REOFFER_AFTER (1h) after its \
         publication, because its consumer has not sealed it; drop no published events before."
    };
    Some(format!(
        "Pub/Sub fixes {} of subscription {id} when it is created: if the declaration is right, `{delete}`, then apply \
         again. {warning}",
        fields.join(", ")
    ))
}
