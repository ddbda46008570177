//! What is declared.

use crate::Verdict;
use crate::output::{Output, table};
use backline_broker::{SubscriptionSpec, Topology, written};

pub(super) fn run(wanted: &Topology, output: &Output) -> anyhow::Result<Verdict> {
    let whole = Topology {
        declared_by: wanted.declared_by.clone(),
        topics: wanted.all_topics(),
        subscriptions: wanted.all_subscriptions(),
    };
    output.answer(&whole, || {
        let topics = whole.topics.iter().map(|id| vec!["topic".to_owned(), id.clone(), String::new()]);
        let read = whole.subscriptions.iter();
        let read =
            read.map(|spec| vec!["subscription".to_owned(), spec.subscription.clone(), describe(spec)]);
        table(&["what", "id", "how"], topics.chain(read))
    })?;
    Ok(Verdict::Good)
}

fn describe(spec: &SubscriptionSpec) -> String {
    let mut parts = vec![
        format!("reads {}", spec.topic),
        if spec.ordered { "ordered" } else { "unordered" }.to_owned(),
        format!("ack deadline {}", written(spec.ack_deadline)),
        format!("again after {} to {}", written(spec.min_backoff), written(spec.max_backoff)),
        format!("kept {}", written(spec.retention)),
        "never expires".to_owned(),
    ];
    parts.extend(spec.filter.as_ref().map(|filter| format!("filter {filter}")));
    parts.extend(
        spec.dead_letter
            .as_ref()
            .map(|dead| format!("after {} deliveries to {}", dead.max_delivery_attempts, dead.topic)),
    );
    parts.join(", ")
}
