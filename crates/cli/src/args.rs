//! The command line.

use crate::bench::{BenchArgs, WorkerArgs};
use crate::demo::DemoArgs;
use crate::dev::DevArgs;
use crate::doctor::DoctorArgs;
use crate::ops::OpsCommand;
use crate::pause::PauseArgs;
use crate::pubsub::PubsubArgs;
use crate::topology::TopologyCommand;
use clap::{Parser, Subcommand};

/// Durable side effects from PostgreSQL: set up, look into, repair and try out.
#[derive(Debug, Parser)]
#[command(name = "backline", version)]
pub(crate) struct Args {
    /// One JSON document on standard output instead of text for people.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// PostgreSQL connection URL of the primary.
    #[arg(long, env = "DATABASE_URL", global = true, hide_env_values = true)]
    pub(crate) database_url: Option<String>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Bring the database's schema up to this build's version.
    Migrate,
    /// Check a deployment and say what to do about what is wrong; exit code 1 when something fails.
    Doctor(DoctorArgs),
    /// List, show and decide about operations.
    Ops {
        #[command(subcommand)]
        command: OpsCommand,
    },
    /// Tell the story of one event, operation or provider reference on one page.
    Explain(ExplainArgs),
    /// Stop new claims of a workload, a provider account or an organization; nothing is lost.
    Pause(PauseArgs),
    /// Lift a pause.
    Resume(PauseArgs),
    /// Topics and subscriptions as workers declare them: show, compare with the broker, make true.
    Topology {
        #[command(subcommand)]
        command: TopologyCommand,
    },
    /// Run everything on this machine for development, until Ctrl-C.
    Dev(DevArgs),
    /// Pay a thousand times while processes are killed and the provider lies, and balance the books.
    Demo(DemoArgs),
    /// Measure this build against bare SQL on the same tables; empties the database it is given.
    Bench(BenchArgs),
    /// The worker that `bench` measures.
    #[command(hide = true)]
    BenchWorker(WorkerArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct ExplainArgs {
    /// Event id, operation id, provider reference (`tr_…`), operation key or aggregate id.
    pub(crate) subject: String,
    #[command(flatten)]
    pub(crate) pubsub: PubsubArgs,
}
