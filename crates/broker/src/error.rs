//! Errors, sorted by what the caller may do about them.

use google_cloud_gax::error::rpc::Code;
use std::sync::Arc;

/// Why one entry was not confirmed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PublishError {
    /// The broker will refuse this entry for ever: park it. Its neighbors are not to blame.
    #[error("entry refused for good: {reason}")]
    Refused {
        /// What the broker, or our own size check, objects to.
        reason: String,
    },
    /// Nothing is wrong with the entry, or nobody can tell: it may or may not have been accepted. Publish the same
    /// bytes again later; parks nothing and counts as no attempt.
    #[error("broker unavailable ({code}): {reason}")]
    Outage {
        /// Status code, `TIMEOUT` or `IO`.
        code: String,
        /// The client's words.
        reason: String,
    },
    /// An earlier entry of the same call failed, so this one was not sent: order is kept.
    #[error("not sent because an earlier entry of its ordering key failed")]
    NotSent,
}

impl PublishError {
    pub(crate) fn timeout(seconds: f64) -> Self {
        Self::Outage { code: "TIMEOUT".to_owned(), reason: format!("no answer within {seconds:.1} s") }
    }

    /// Only what the service says about the *content* is final. A missing topic or permission is a fault of the
    /// deployment: parking entries for it would turn one mistake into as many dead letters as there is traffic.
    pub(crate) fn classify(error: &google_cloud_pubsub::error::PublishError) -> Self {
        use google_cloud_pubsub::error::PublishError as Client;
        match error {
            Client::Rpc(error) => from_rpc(error),
            other => Self::Outage { code: "PAUSED".to_owned(), reason: other.to_string() },
        }
    }
}

fn from_rpc(error: &Arc<google_cloud_pubsub::Error>) -> PublishError {
    if let Some(status) = error.status() {
        return match status.code {
            Code::InvalidArgument | Code::OutOfRange => {
                PublishError::Refused { reason: status.message.clone() }
            }
            code => PublishError::Outage { code: code.to_string(), reason: status.message.clone() },
        };
    }
    if error.is_serialization() {
        return PublishError::Refused { reason: error.to_string() };
    }
    let code = if error.is_timeout() { "TIMEOUT" } else { "IO" };
    PublishError::Outage { code: code.to_owned(), reason: error.to_string() }
}

/// Topics and subscriptions could not be looked up or made.
#[derive(Debug, thiserror::Error)]
#[error("pub/sub {what} `{name}`: {source}")]
pub struct AdminError {
    pub(crate) what: &'static str,
    pub(crate) name: String,
    #[source]
    pub(crate) source: google_cloud_pubsub::Error,
}

impl AdminError {
    /// The resource does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.source.status().is_some_and(|status| status.code == Code::NotFound)
    }

    /// The credentials may not look.
    #[must_use]
    pub fn is_permission_denied(&self) -> bool {
        self.source.status().is_some_and(|status| status.code == Code::PermissionDenied)
    }
}

/// The client could not be built: credentials or endpoint are wrong.
#[derive(Debug, thiserror::Error)]
#[error("pub/sub client for project `{project}`: {source}")]
pub struct ConnectError {
    pub(crate) project: String,
    #[source]
    pub(crate) source: Box<dyn std::error::Error + Send + Sync>,
}
