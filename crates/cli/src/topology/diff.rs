//! What is declared against what exists.

use crate::Verdict;
use crate::output::Output;
use backline_broker::{AdminError, Broker, Change, Difference, FieldDifference, Topology};
use serde_json::json;

pub(super) async fn run(broker: &Broker, wanted: &Topology, output: &Output) -> anyhow::Result<Verdict> {
    let differences = broker.compare(wanted).await.map_err(|error| explained(&error))?;
    let (topics, subscriptions) = (wanted.all_topics().len(), wanted.all_subscriptions().len());
    let answer = json!({"topics": topics, "subscriptions": subscriptions, "differences": differences});
    output.answer(&answer, || match differences.as_slice() {
        [] => format!("as declared: {topics} topics, {subscriptions} subscriptions"),
        some => some.iter().map(line).collect::<Vec<_>>().join("\n"),
    })?;
    Ok(if differences.is_empty() { Verdict::Good } else { Verdict::Bad })
}

/// With the role that is missing, where one is.
pub(super) fn explained(error: &AdminError) -> anyhow::Error {
    let remedy = if error.is_permission_denied() {
        "; these credentials need roles/pubsub.viewer to compare, roles/pubsub.editor to apply"
    } else {
        ""
    };
    anyhow::anyhow!("{error}{remedy}")
}

/// One difference for people.
pub(crate) fn line(difference: &Difference) -> String {
    let head = format!("{} {}", difference.resource.as_str(), difference.id);
    if difference.missing {
        return format!("{head}: missing");
    }
    let lines = difference.fields.iter().map(|one| {
        let how = match one.change {
            Change::InPlace => "apply updates it",
            Change::Recreate => "fixed at creation, apply refuses",
        };
        format!("{head}: {} ({how})", values(one))
    });
    lines.collect::<Vec<_>>().join("\n")
}

pub(super) fn values(field: &FieldDifference) -> String {
    format!("{} is {}, declared {}", field.field, field.actual, field.declared)
}
