//! Making declarations true. Nothing is ever deleted.

use crate::connect::Broker;
use crate::difference::{Change, Difference, FieldDifference, Resource};
use crate::error::AdminError;
use crate::topology::Topology;
use google_cloud_pubsub::model::PushConfig;
use google_cloud_wkt::FieldMask;
use serde::Serialize;

/// What was done about one difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mended {
    /// Which kind.
    pub resource: Resource,
    /// Its id.
    pub id: String,
    /// It was missing and is there now.
    pub created: bool,
    /// Fields that were updated in place.
    pub updated: Vec<FieldDifference>,
    /// Fields that cannot be updated and are as they were.
    pub refused: Vec<FieldDifference>,
}

impl Broker {
    /// Mends one difference of `wanted` as far as that loses nothing: creates what is missing, updates what can be
    /// updated, and leaves what Pub/Sub fixes at creation.
    ///
    /// # Errors
    /// The admin call failed.
    pub async fn mend(&self, wanted: &Topology, difference: &Difference) -> Result<Mended, AdminError> {
        let (resource, id) = (difference.resource, difference.id.clone());
        let (updated, refused): (Vec<_>, Vec<_>) =
            difference.fields.iter().cloned().partition(|field| field.change == Change::InPlace);
        let spec = wanted.all_subscriptions().into_iter().find(|spec| spec.subscription == id);
        match (resource, spec) {
            (Resource::Topic, _) => self.ensure_topic(&id).await?,
            (Resource::Subscription, Some(spec)) if difference.missing => {
                self.ensure_subscription(&spec).await?
            }
            (Resource::Subscription, Some(spec)) if !updated.is_empty() => {
                let mut paths: Vec<&str> = updated.iter().filter_map(|field| path(field.field)).collect();
                paths.dedup();
                // Naming no endpoint is what turns a push subscription into one that is pulled.
                let to = self.wire(&spec).set_push_config(PushConfig::new());
                let call = self.inner.subscriptions.update_subscription();
                let call = call.set_subscription(to).set_update_mask(FieldMask::default().set_paths(paths));
                call.send().await.map_err(|source| AdminError {
                    what: "subscription",
                    name: id.clone(),
                    source,
                })?;
            }
            (Resource::Subscription, _) => {}
        }
        Ok(Mended { resource, id, created: difference.missing, updated, refused })
    }
}

/// The protocol's name of a field that can be updated.
fn path(field: &str) -> Option<&'static str> {
    match field {
        "push" => Some("push_config"),
        "exactly_once" => Some("enable_exactly_once_delivery"),
        "ack_deadline" => Some("ack_deadline_seconds"),
        "backoff" => Some("retry_policy"),
        "retention" => Some("message_retention_duration"),
        "expires" => Some("expiration_policy"),
        "dead_letter" => Some("dead_letter_policy"),
        _ => None,
    }
}
