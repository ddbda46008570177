//! `CloudEvents` 1.0 in Pub/Sub's binary mode: the payload is the data, every other field an attribute `ce-<name>`.
//!
//! Binding: <https://github.com/googleapis/google-cloudevents/blob/main/docs/spec/pubsub.md>.

use crate::contract::MAX_ATTRIBUTE_BYTES;
use crate::{Envelope, Malformed, Payload};
use std::collections::HashMap;
use time::format_description::well_known::Rfc3339;
use time::{OffsetDateTime, UtcOffset};
use uuid::Uuid;

/// Attributes of a Pub/Sub message; the map type is the one Google's client takes, so nothing is copied.
pub type Attributes = HashMap<String, String>;

/// `ce-source` of everything the outbox sends.
pub const SOURCE: &str = "/backline/outbox";

/// Stands before the event's name in `ce-type`, as in `backline.PaymentAuthorized.v1`.
pub const TYPE_PREFIX: &str = "backline.";

/// Google's own clients look for the trace context under this prefix.
const GOOGLE_TRACE_PREFIX: &str = "googclient_";

impl Envelope {
    /// The envelope's attributes; the message's data is the payload's text.
    #[must_use]
    pub fn to_attributes(&self) -> Attributes {
        let mut map = Attributes::with_capacity(20);
        let mut put = |name: &str, value: String| drop(map.insert(name.to_owned(), value));
        put("ce-specversion", "1.0".to_owned());
        put("ce-id", self.id.to_string());
        put("ce-source", SOURCE.to_owned());
        put("ce-type", format!("{TYPE_PREFIX}{}.v{}", self.event_type, self.schema_version));
        put("ce-time", rfc3339(self.occurred_at));
        put("ce-subject", format!("{}/{}", self.aggregate_type, self.aggregate_id));
        put("ce-datacontenttype", "application/json".to_owned());
        put("ce-aggregatetype", self.aggregate_type.clone());
        put("ce-aggregateid", self.aggregate_id.clone());
        put("ce-correlationid", self.correlation_id.to_string());
        if let Some(organization) = self.organization {
            put("ce-organization", organization.to_string());
        }
        if let Some(project) = self.project {
            put("ce-project", project.to_string());
        }
        if let Some(version) = self.aggregate_version {
            put("ce-aggregateversion", version.to_string());
        }
        if let Some(causation) = self.causation_id {
            put("ce-causationid", causation.to_string());
        }
        for (name, value) in [("traceparent", &self.traceparent), ("tracestate", &self.tracestate)] {
            // A trace hint that does not fit is left out whole; it must never park an event.
            if let Some(value) = value.as_ref().filter(|value| value.len() <= MAX_ATTRIBUTE_BYTES) {
                put(&format!("ce-{name}"), value.clone());
                put(&format!("{GOOGLE_TRACE_PREFIX}{name}"), value.clone());
            }
        }
        map
    }

    /// Reads a delivery back.
    ///
    /// # Errors
    /// [`Malformed`] names the attribute that is missing or unreadable. An unknown type or version is not an error
    /// here; [`crate::decode()`] decides that.
    pub fn from_attributes(attributes: &Attributes, data: &[u8]) -> Result<Self, Malformed> {
        let get = |name: &str| attributes.get(name).map(String::as_str);
        if get("content-type").is_some_and(|value| value.starts_with("application/cloudevents")) {
            return Err(Malformed::new("content-type", "structured CloudEvents are not used here"));
        }
        if get("ce-specversion") != Some("1.0") {
            return Err(Malformed::new("ce-specversion", "is not 1.0"));
        }
        let (event_type, schema_version) = type_and_version(required(get("ce-type"), "ce-type")?)?;
        let time = required(get("ce-time"), "ce-time")?;
        let trace = |name: &str| {
            get(&format!("ce-{name}"))
                .or_else(|| get(&format!("{GOOGLE_TRACE_PREFIX}{name}")))
                .map(str::to_owned)
        };
        Ok(Self {
            id: uuid(required(get("ce-id"), "ce-id")?, "ce-id")?,
            event_type,
            schema_version,
            organization: get("ce-organization").map(|v| uuid(v, "ce-organization")).transpose()?,
            project: get("ce-project").map(|v| uuid(v, "ce-project")).transpose()?,
            aggregate_type: required(get("ce-aggregatetype"), "ce-aggregatetype")?.to_owned(),
            aggregate_id: required(get("ce-aggregateid"), "ce-aggregateid")?.to_owned(),
            aggregate_version: get("ce-aggregateversion")
                .map(|v| {
                    v.parse().map_err(|_| Malformed::new("ce-aggregateversion", "is not a whole number"))
                })
                .transpose()?,
            correlation_id: uuid(required(get("ce-correlationid"), "ce-correlationid")?, "ce-correlationid")?,
            causation_id: get("ce-causationid").map(|v| uuid(v, "ce-causationid")).transpose()?,
            traceparent: trace("traceparent"),
            tracestate: trace("tracestate"),
            occurred_at: OffsetDateTime::parse(time, &Rfc3339)
                .map_err(|_| Malformed::new("ce-time", "is not an RFC 3339 time"))?,
            payload: Payload::from_slice(data).map_err(|error| Malformed::new("data", error.to_string()))?,
        })
    }
}

fn required<'a>(value: Option<&'a str>, name: &'static str) -> Result<&'a str, Malformed> {
    value.filter(|value| !value.is_empty()).ok_or_else(|| Malformed::new(name, "is missing"))
}

fn uuid(value: &str, name: &'static str) -> Result<Uuid, Malformed> {
    Uuid::try_parse(value).map_err(|_| Malformed::new(name, "is not a UUID"))
}

fn type_and_version(value: &str) -> Result<(String, i32), Malformed> {
    let parsed = value.strip_prefix(TYPE_PREFIX).and_then(|rest| {
        let (name, version) = rest.rsplit_once(".v")?;
        let version = version.parse().ok().filter(|version| *version >= 1)?;
        (!name.is_empty()).then(|| (name.to_owned(), version))
    });
    parsed.ok_or_else(|| {
        Malformed::new("ce-type", format!("is not of the form `{TYPE_PREFIX}<Name>.v<version>`"))
    })
}

/// UTC with `Z`, so that equal times have equal bytes.
fn rfc3339(time: OffsetDateTime) -> String {
    // Formatting fails only outside the years 0 to 9999, which PostgreSQL's own clock never gives.
    time.to_offset(UtcOffset::UTC).format(&Rfc3339).unwrap_or_default()
}
