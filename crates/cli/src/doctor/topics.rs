//! Whether the topics and subscriptions are there and as declared.

use super::check::Check;
use crate::output::span;
use crate::topology::{Declarations, line};
use backline_broker::{AdminError, Broker, Topology};
use sqlx::PgPool;

/// A topic that entries of the outbox wait for.
#[derive(Debug)]
pub(super) struct Waiting {
    topic: String,
    entries: i64,
    oldest_seconds: f64,
}

pub(super) async fn waiting(pool: &PgPool) -> sqlx::Result<Vec<Waiting>> {
    sqlx::query_file_as!(Waiting, "sql/waiting_topics.sql").fetch_all(pool).await
}

/// What to do about a lookup that failed.
pub(super) fn unseen(name: &'static str, error: &AdminError) -> Check {
    let advice = if error.is_permission_denied() {
        "these credentials may not look: give them roles/pubsub.viewer, or run doctor with others"
    } else {
        "see that the network and the credentials reach it, then run doctor again"
    };
    Check::warn(name, format!("not checked: {error}"), advice)
}

/// The remedy for a topic that is not there.
pub(crate) fn make(topic: &str) -> String {
    format!(
        "`backline topology apply --worker PROGRAM` with the worker that reads it, so that it is read from the start; \
         `backline topology apply --topic {topic}` makes it alone. If producers misspelled it: correct them, and make it \
         so that what waits goes out. Nothing is lost meanwhile"
    )
}

/// Checks of topics; the ids of those that exist; whether entries wait for one that does not.
pub(super) async fn checks(
    broker: &Broker,
    events: &str,
    waiting: &[Waiting],
    declared: Option<&Topology>,
    checks: &mut Vec<Check>,
) -> (Vec<String>, bool) {
    let mut ids: Vec<String> = waiting.iter().map(|one| one.topic.clone()).collect();
    ids.extend(declared.iter().flat_map(|all| all.all_topics()));
    ids.push(events.to_owned());
    ids.sort();
    ids.dedup();
    let (mut found, mut owed) = (Vec::new(), false);
    for id in ids {
        match broker.has_topic(&id).await {
            Ok(true) => found.push(id),
            Ok(false) => {
                let entries = waiting.iter().find(|one| one.topic == id);
                owed |= entries.is_some();
                checks.push(match entries {
                    Some(one) => Check::fail(
                        "topics",
                        format!(
                            "topic {id} does not exist; {} entries wait for it, the oldest for {}",
                            one.entries,
                            span(one.oldest_seconds)
                        ),
                        make(&id),
                    ),
                    None => Check::warn(
                        "topics",
                        format!("topic {id} does not exist; nothing waits for it yet"),
                        make(&id),
                    ),
                });
            }
            Err(error) => {
                checks.push(unseen("topics", &error));
                break;
            }
        }
    }
    if !found.is_empty() {
        checks.push(Check::ok("topics", format!("there: {}", found.join(", "))));
    }
    (found, owed)
}

/// What is published to a topic without a subscription is confirmed, and read by nobody.
pub(super) async fn readers(
    broker: &Broker,
    events: &str,
    waiting: &[Waiting],
    found: &[String],
    checks: &mut Vec<Check>,
) {
    let published = |id: &&String| *id == events || waiting.iter().any(|one| one.topic == **id);
    for id in found.iter().filter(published) {
        match broker.subscriptions_of(id).await {
            Ok(Some(readers)) if readers.is_empty() => checks.push(Check::warn(
                "readers",
                format!("topic {id} has no subscription: what is published there is read by nobody"),
                "`backline topology apply --worker PROGRAM` with the worker that reads it",
            )),
            Ok(_) => {}
            Err(error) => return checks.push(unseen("readers", &error)),
        }
    }
}

/// What is declared against what exists.
pub(super) async fn declared(broker: &Broker, wanted: &Topology) -> Check {
    match broker.compare(wanted).await {
        Err(error) => unseen("topology", &error),
        Ok(differences) if differences.is_empty() => Check::ok("topology", "as declared"),
        Ok(differences) => {
            let lines: Vec<String> = differences.iter().map(line).collect();
            Check::fail(
                "topology",
                lines.join("\n            "),
                "`backline topology apply` with the same declarations",
            )
        }
    }
}

/// Reads the declarations that were given, if any.
pub(super) async fn wanted(declarations: &Declarations, checks: &mut Vec<Check>) -> Option<Topology> {
    if !declarations.is_given() {
        checks.push(Check::ok(
            "topology",
            "not compared: give --worker or --declaration, as to `backline topology diff`",
        ));
        return None;
    }
    match declarations.read().await {
        Ok(wanted) => Some(wanted),
        Err(error) => {
            checks.push(Check::fail("topology", format!("{error:#}"), "mend the declaration"));
            None
        }
    }
}
