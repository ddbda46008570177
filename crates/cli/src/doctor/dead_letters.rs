//! Whether dead letters are kept, and whether the broker may forward them at all.

use super::check::Check;
use super::topics::unseen;
use crate::pubsub::PubsubArgs;
use backline_broker::{AdminError, Broker, DeadLetter, Grant, Resource};

const NAME: &str = "dead letters";

/// Looks at every subscription of these topics.
pub(super) async fn checks(pubsub: &PubsubArgs, broker: &Broker, topics: &[String], checks: &mut Vec<Check>) {
    let before = checks.len();
    let mut kept = Vec::new();
    for topic in topics {
        let subscriptions = match broker.subscriptions_of(topic).await {
            Ok(subscriptions) => subscriptions.unwrap_or_default(),
            Err(error) => return checks.push(unseen(NAME, &error)),
        };
        for subscription in subscriptions {
            match of(pubsub, broker, &subscription).await {
                Ok((findings, dead)) => {
                    checks.extend(findings);
                    kept.extend(dead);
                }
                Err(error) => checks.push(unseen(NAME, &error)),
            }
        }
    }
    if checks.len() == before {
        checks.push(match kept.len() {
            0 => Check::ok(
                NAME,
                "no subscription forwards any; what is not settled stays until its retention ends",
            ),
            _ => Check::ok(NAME, format!("kept: {}", kept.join(", "))),
        });
    }
}

/// What is wrong with one subscription's dead letters, and their topic when they are kept.
async fn of(
    pubsub: &PubsubArgs,
    broker: &Broker,
    subscription: &str,
) -> Result<(Vec<Check>, Option<String>), AdminError> {
    let Some(dead) = broker.dead_letters_of(subscription).await? else { return Ok((Vec::new(), None)) };
    let topic = &dead.topic;
    let mut findings = Vec::new();
    match broker.subscriptions_of(topic).await? {
        None => {
            let found = format!(
                "{subscription} forwards to topic {topic}, which does not exist: nothing is forwarded"
            );
            findings.push(Check::fail(NAME, found, make(pubsub, &dead, Missing::Topic)));
            // Without the topic there is nothing to ask permissions of.
            return Ok((findings, None));
        }
        Some(readers) if readers.is_empty() => {
            let found =
                format!("topic {topic} of {subscription} has no subscription: what is forwarded is lost");
            findings.push(Check::fail(NAME, found, make(pubsub, &dead, Missing::Subscription)));
        }
        Some(_) => {}
    }
    let publisher = broker.may_forward_to(topic).await?;
    findings.extend(grant(pubsub, &publisher, Resource::Topic, topic, "publisher"));
    let subscriber = broker.may_forward_from(subscription).await?;
    findings.extend(grant(pubsub, &subscriber, Resource::Subscription, subscription, "subscriber"));
    Ok((findings, Some(dead.topic)))
}

enum Missing {
    Topic,
    Subscription,
}

fn make(pubsub: &PubsubArgs, dead: &DeadLetter, missing: Missing) -> String {
    let (topic, kept, project) = (&dead.topic, dead.kept_in(), pubsub.project());
    let declared = "`backline topology apply` with the worker that declares it";
    if pubsub.pubsub_emulator_host.is_some() {
        return declared.to_owned();
    }
    let subscription = format!(
        "gcloud pubsub subscriptions create {kept} --topic={topic} --project={project} --expiration-period=never \
         --message-retention-duration=31d"
    );
    match missing {
        Missing::Topic => {
            format!(
                "{declared}, or `gcloud pubsub topics create {topic} --project={project}` and `{subscription}`"
            )
        }
        Missing::Subscription => format!("{declared}, or `{subscription}`"),
    }
}

/// Forwarding is done by an account of Google's; without these two roles an entry is redelivered for ever.
fn grant(pubsub: &PubsubArgs, grant: &Grant, resource: Resource, id: &str, role: &str) -> Option<Check> {
    let (kind, project) = (resource.as_str(), pubsub.project());
    let command = format!(
        "gcloud pubsub {kind}s add-iam-policy-binding {id} --project={project} --role=roles/pubsub.{role} \
         --member=\"serviceAccount:service-$(gcloud projects describe {project} \
         --format='value(projectNumber)')@gcp-sa-pubsub.iam.gserviceaccount.com\""
    );
    match grant {
        Grant::Given | Grant::Meaningless => None,
        Grant::NotSeen => Some(Check::warn(
            NAME,
            format!(
                "Pub/Sub's own account has no role on {kind} {id} that lets it forward; a grant on the project or above \
                 cannot be seen from here"
            ),
            format!("`{command}`, unless the project grants it"),
        )),
        Grant::Hidden(reason) => Some(Check::warn(
            NAME,
            format!(
                "not checked: these credentials may not read who may do what on {kind} {id} \
                 (pubsub.{kind}s.getIamPolicy): {reason}"
            ),
            format!("run doctor with roles/pubsub.admin, or make sure of it: `{command}`"),
        )),
    }
}

/// What these credentials themselves may do. Only the processes' own matter, so this never fails.
pub(super) async fn own(broker: &Broker, topics: &[String]) -> Option<Check> {
    let mut refused = Vec::new();
    for topic in topics {
        match broker.held(Resource::Topic, topic, &["pubsub.topics.publish"]).await {
            Ok(None) => return None,
            Ok(Some(held)) if held.is_empty() => refused.push(topic.clone()),
            Ok(Some(_)) => {}
            Err(error) => return Some(unseen("permissions", &error)),
        }
    }
    Some(if refused.is_empty() {
        Check::ok("permissions", "these credentials may publish; whether the relay's may, only they can tell")
    } else {
        let found = format!("these credentials may not publish to {}", refused.join(", "));
        Check::warn("permissions", found, "of no account unless they are the relay's: run doctor with those")
    })
}
