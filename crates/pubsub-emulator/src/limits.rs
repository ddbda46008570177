//! Limits of the service, enforced as it does. Figures: <https://cloud.google.com/pubsub/quotas#resource_limits>
//! and the comments of `google/pubsub/v1/pubsub.proto`.

use googleapis_tonic_google_pubsub_v1::google::pubsub::v1::PubsubMessage;
use prost::Message;
use tonic::Status;

const PUBLISH_MESSAGES: usize = 1000;
const PUBLISH_BYTES: usize = 10_000_000;
const ATTRIBUTES: usize = 100;
const ATTRIBUTE_KEY_BYTES: usize = 256;
const ATTRIBUTE_VALUE_BYTES: usize = 1024;
const ORDERING_KEY_BYTES: usize = 1024;
const ACK_REQUEST_BYTES: usize = 512 * 1024;

/// Largest request the server reads at all: somewhat above the publish limit, so that too large a publish
/// gets its own answer.
pub(crate) const REQUEST_BYTES: usize = 32 * 1024 * 1024;

/// Checks one publish request.
pub(crate) fn publish(messages: &[PubsubMessage]) -> Result<(), Status> {
    if messages.is_empty() {
        return Err(Status::invalid_argument("messages: a publish needs at least one"));
    }
    if messages.len() > PUBLISH_MESSAGES {
        return Err(Status::invalid_argument(format!(
            "messages: {} is more than {PUBLISH_MESSAGES} in one publish",
            messages.len()
        )));
    }
    let bytes: usize = messages.iter().map(Message::encoded_len).sum();
    if bytes > PUBLISH_BYTES {
        return Err(Status::invalid_argument(format!(
            "request payload size exceeds the limit: {PUBLISH_BYTES} bytes"
        )));
    }
    let key = &messages[0].ordering_key;
    for message in messages {
        if message.ordering_key != *key {
            return Err(Status::invalid_argument(
                "ordering_key: every message of a publish must carry the same one",
            ));
        }
        one(message)?;
    }
    Ok(())
}

fn one(message: &PubsubMessage) -> Result<(), Status> {
    let refuse = |text: String| Err(Status::invalid_argument(text));
    if message.data.is_empty() && message.attributes.is_empty() {
        return refuse("data: a message needs data or at least one attribute".into());
    }
    if message.ordering_key.len() > ORDERING_KEY_BYTES {
        return refuse(format!("ordering_key: longer than {ORDERING_KEY_BYTES} bytes"));
    }
    if message.attributes.len() > ATTRIBUTES {
        return refuse(format!("attributes: more than {ATTRIBUTES} in one message"));
    }
    for (key, value) in &message.attributes {
        if key.is_empty() || key.len() > ATTRIBUTE_KEY_BYTES {
            return refuse(format!("attributes: a key must have 1 to {ATTRIBUTE_KEY_BYTES} bytes"));
        }
        if key.starts_with("goog") && !key.starts_with("googclient_") {
            return refuse("attributes: keys starting with \"goog\" are reserved".into());
        }
        if value.len() > ATTRIBUTE_VALUE_BYTES {
            return refuse(format!("attributes: a value is longer than {ATTRIBUTE_VALUE_BYTES} bytes"));
        }
    }
    Ok(())
}

/// Checks the acknowledgement ids of one request.
pub(crate) fn ack_ids(ids: &[String]) -> Result<(), Status> {
    if ids.is_empty() {
        return Err(Status::invalid_argument("ack_ids: none given"));
    }
    if ids.iter().map(String::len).sum::<usize>() > ACK_REQUEST_BYTES {
        return Err(Status::invalid_argument(format!(
            "request payload size exceeds the limit: {ACK_REQUEST_BYTES} bytes"
        )));
    }
    Ok(())
}

/// Checks a resource name: `projects/{project}/{collection}/{id}`, id of 3 to 255 characters.
pub(crate) fn name(name: &str, collection: &str) -> Result<(), Status> {
    let refuse = || {
        Status::invalid_argument(format!("name: {name:?} is not projects/{{project}}/{collection}/{{id}}"))
    };
    let mut parts = name.split('/');
    let (Some("projects"), Some(project), Some(found), Some(id), None) =
        (parts.next(), parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(refuse());
    };
    if project.is_empty() || found != collection {
        return Err(refuse());
    }
    let fits = (3..=255).contains(&id.len())
        && id.starts_with(|c: char| c.is_ascii_alphabetic())
        && id.chars().all(|c| c.is_ascii_alphanumeric() || "-_.~+%".contains(c))
        && !id.starts_with("goog");
    if fits { Ok(()) } else { Err(refuse()) }
}

#[cfg(test)]
mod tests {
    use super::{ack_ids, name, publish};
    use googleapis_tonic_google_pubsub_v1::google::pubsub::v1::PubsubMessage;

    fn message(bytes: usize) -> PubsubMessage {
        PubsubMessage { data: vec![b'x'; bytes].into(), ..Default::default() }
    }

    #[test]
    fn publish_limits() {
        assert!(publish(&vec![message(1); 1000]).is_ok());
        assert!(publish(&vec![message(1); 1001]).is_err());
        assert!(publish(&[message(10_500_000)]).is_err());
        assert!(publish(&[message(0)]).is_err());
        let mut keyed = message(1);
        keyed.ordering_key = "k".into();
        assert!(publish(&[keyed.clone(), message(1)]).is_err());
        keyed.ordering_key = "k".repeat(1025);
        assert!(publish(&[keyed]).is_err());
    }

    #[test]
    fn attribute_limits() {
        let with = |key: String, value: String| {
            let mut message = message(1);
            message.attributes.insert(key, value);
            publish(&[message])
        };
        assert!(with("k".repeat(256), "v".repeat(1024)).is_ok());
        assert!(with("k".repeat(257), String::new()).is_err());
        assert!(with("k".into(), "v".repeat(1025)).is_err());
        let mut many = message(1);
        many.attributes = (0..101).map(|n| (format!("k{n}"), String::new())).collect();
        assert!(publish(&[many]).is_err());
    }

    #[test]
    fn names_and_ack_ids() {
        assert!(name("projects/p/topics/orders.v1", "topics").is_ok());
        for bad in [
            "projects/p/topics/1xx",
            "projects/p/topics/xx",
            "projects/p/topics/goog-x",
            "topics/x",
            "projects/p/subscriptions/x",
        ] {
            assert!(name(bad, "topics").is_err(), "{bad}");
        }
        assert!(ack_ids(&[]).is_err());
        assert!(ack_ids(&["x".repeat(600 * 1024)]).is_err());
    }
}
