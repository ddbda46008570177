//! Who may do what: the broker's own account for dead letters, and the credentials that ask.

use crate::connect::{Broker, admin_backoff, admin_limit};
use crate::difference::Resource;
use crate::error::AdminError;
use google_cloud_auth::credentials::anonymous;
use google_cloud_gax::error::rpc::Code;
use google_cloud_pubsub::client::SchemaService;

/// Whether Pub/Sub's own account may do something that dead letters need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grant {
    /// Granted on the resource itself.
    Given,
    /// Not granted on the resource; a grant on the whole project would not be seen here.
    NotSeen,
    /// These credentials may not read the resource's policy.
    Hidden(String),
    /// The broker has no permissions at all: an emulator.
    Meaningless,
}

/// Roles that contain publishing, and those that contain acknowledging
/// (<https://cloud.google.com/pubsub/docs/access-control#roles>).
const PUBLISHING: [&str; 4] =
    ["roles/pubsub.publisher", "roles/pubsub.editor", "roles/pubsub.admin", "roles/owner"];
const ACKNOWLEDGING: [&str; 4] =
    ["roles/pubsub.subscriber", "roles/pubsub.editor", "roles/pubsub.admin", "roles/owner"];

impl Broker {
    /// Whether the broker's account may publish to a topic of dead letters.
    ///
    /// # Errors
    /// No answer within 5 s, or no such topic.
    pub async fn may_forward_to(&self, topic: &str) -> Result<Grant, AdminError> {
        self.granted(Resource::Topic, topic, &PUBLISHING).await
    }

    /// Whether the broker's account may acknowledge on a subscription whose dead letters it forwards.
    ///
    /// # Errors
    /// No answer within 5 s, or no such subscription.
    pub async fn may_forward_from(&self, subscription: &str) -> Result<Grant, AdminError> {
        self.granted(Resource::Subscription, subscription, &ACKNOWLEDGING).await
    }

    /// Which of `permissions` the credentials of this process have; `None` with an emulator, which has none.
    ///
    /// # Errors
    /// No answer within 5 s, or no such resource.
    pub async fn held(
        &self,
        resource: Resource,
        id: &str,
        permissions: &[&str],
    ) -> Result<Option<Vec<String>>, AdminError> {
        let name = self.resource_name(resource, id);
        let call = self.policies(resource, id).await?.test_iam_permissions();
        let call = call.set_resource(name).set_permissions(permissions.iter().copied());
        match call.send().await {
            Ok(answer) => Ok(Some(answer.permissions)),
            Err(_) if self.inner.config.emulator_host.is_some() => Ok(None),
            Err(source) => Err(AdminError { what: resource.as_str(), name: id.to_owned(), source }),
        }
    }

    async fn granted(&self, resource: Resource, id: &str, roles: &[&str]) -> Result<Grant, AdminError> {
        let call = self.policies(resource, id).await?.get_iam_policy();
        match call.set_resource(self.resource_name(resource, id)).send().await {
            Ok(policy) => {
                let bindings = policy.bindings.iter().map(|one| (one.role.as_str(), one.members.as_slice()));
                Ok(if gives(bindings, roles) { Grant::Given } else { Grant::NotSeen })
            }
            Err(source) => match source.status() {
                Some(status) if status.code == Code::PermissionDenied => {
                    Ok(Grant::Hidden(status.message.clone()))
                }
                _ if self.inner.config.emulator_host.is_some() => Ok(Grant::Meaningless),
                _ => Err(AdminError { what: resource.as_str(), name: id.to_owned(), source }),
            },
        }
    }

    fn resource_name(&self, resource: Resource, id: &str) -> String {
        match resource {
            Resource::Topic => self.topic_name(id),
            Resource::Subscription => self.subscription_name(id),
        }
    }

    /// Policies are a service of their own at the same address; Google's client offers it with schemas only.
    async fn policies(&self, resource: Resource, id: &str) -> Result<SchemaService, AdminError> {
        let mut client =
            SchemaService::builder().with_retry_policy(admin_limit()).with_backoff_policy(admin_backoff());
        if let Some(host) = &self.inner.config.emulator_host {
            client = client
                .with_endpoint(format!("http://{host}"))
                .with_credentials(anonymous::Builder::new().build());
        }
        client.build().await.map_err(|source| AdminError {
            what: resource.as_str(),
            name: id.to_owned(),
            source: google_cloud_pubsub::Error::io(source),
        })
    }
}

/// Whether a binding gives one of the roles to Pub/Sub's own account of any project.
fn gives<'a>(bindings: impl IntoIterator<Item = (&'a str, &'a [String])>, roles: &[&str]) -> bool {
    let own = |member: &String| {
        member.starts_with("serviceAccount:service-")
            && member.ends_with("@gcp-sa-pubsub.iam.gserviceaccount.com")
    };
    bindings.into_iter().any(|(role, members)| roles.contains(&role) && members.iter().any(own))
}

#[cfg(test)]
mod tests {
    use super::{ACKNOWLEDGING, PUBLISHING, gives};

    #[test]
    fn only_the_brokers_own_account_counts_and_only_with_a_role_that_suffices() {
        let agent = ["serviceAccount:service-4711@gcp-sa-pubsub.iam.gserviceaccount.com".to_owned()];
        let other =
            ["user:ann@example.com".to_owned(), "serviceAccount:relay@p.iam.gserviceaccount.com".to_owned()];
        let policy = |role, members| [(role, members)];
        assert!(gives(policy("roles/pubsub.publisher", &agent[..]), &PUBLISHING));
        assert!(!gives(policy("roles/pubsub.publisher", &agent[..]), &ACKNOWLEDGING));
        assert!(!gives(policy("roles/pubsub.viewer", &agent[..]), &PUBLISHING));
        assert!(!gives(policy("roles/pubsub.publisher", &other[..]), &PUBLISHING));
        assert!(gives(policy("roles/pubsub.subscriber", &agent[..]), &ACKNOWLEDGING));
    }
}
