//! The operator's way to Pub/Sub.

use anyhow::Context;
use backline_broker::{Broker, BrokerConfig, Resource};
use clap::Args;
use std::time::Duration;

/// Looking for credentials asks the machine's metadata service, which may hang where there is none.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// Which Pub/Sub is meant.
#[derive(Debug, Clone, Args)]
pub(crate) struct PubsubArgs {
    /// Pub/Sub emulator as host:port; without it the real service is tried when a project is given.
    #[arg(long, env = "PUBSUB_EMULATOR_HOST", value_parser = backline_broker::emulator_host)]
    pub(crate) pubsub_emulator_host: Option<String>,
    /// Google Cloud project of the topics.
    #[arg(long, env = "PUBSUB_PROJECT_ID", value_parser = backline_broker::project_id)]
    pub(crate) pubsub_project: Option<String>,
}

impl PubsubArgs {
    /// Whether one is named at all.
    pub(crate) fn is_given(&self) -> bool {
        self.pubsub_emulator_host.is_some() || self.pubsub_project.is_some()
    }

    /// The project, which programs take for `backline` when none is given.
    pub(crate) fn project(&self) -> &str {
        self.pubsub_project.as_deref().unwrap_or("backline")
    }

    pub(crate) async fn connect(&self) -> anyhow::Result<Broker> {
        anyhow::ensure!(self.is_given(), "neither PUBSUB_EMULATOR_HOST nor PUBSUB_PROJECT_ID is set");
        let config = BrokerConfig::new(self.project(), self.pubsub_emulator_host.clone());
        tokio::time::timeout(CONNECT_LIMIT, Broker::connect(config))
            .await
            .context("Google credentials: no answer within 10s")?
            .context("run `gcloud auth application-default login`, or run this where the workers run")
    }

    /// The command that deletes something here, for people to judge and to run.
    pub(crate) fn deletion(&self, resource: Resource, id: &str) -> String {
        let (project, kind) = (self.project(), resource.as_str());
        match &self.pubsub_emulator_host {
            Some(host) => format!("curl -X DELETE http://{host}/v1/projects/{project}/{kind}s/{id}"),
            None => format!("gcloud pubsub {kind}s delete {id} --project={project}"),
        }
    }
}
