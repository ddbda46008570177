//! `backline topology`: topics and subscriptions as the programs that need them declare them.

mod apply;
mod declared;
mod diff;
mod show;

use crate::Verdict;
use crate::output::Output;
use crate::pubsub::PubsubArgs;
use clap::{Args, Subcommand};
pub(crate) use declared::Declarations;
pub(crate) use diff::line;

#[derive(Debug, Subcommand)]
pub(crate) enum TopologyCommand {
    /// What is declared, with the topics of dead letters and where those are kept; the JSON is a declaration itself.
    Show(Declarations),
    /// What is declared against what exists; exit code 1 when they differ, 2 when that could not be found out.
    Diff(TopologyArgs),
    /// Create what is missing and update what can be updated; deletes nothing. Exit code 1 when something was refused.
    Apply(TopologyArgs),
}

#[derive(Debug, Args)]
pub(crate) struct TopologyArgs {
    #[command(flatten)]
    declarations: Declarations,
    #[command(flatten)]
    pubsub: PubsubArgs,
}

pub(crate) async fn run(command: TopologyCommand, output: &Output) -> anyhow::Result<Verdict> {
    match command {
        TopologyCommand::Show(declarations) => show::run(&declarations.read().await?, output),
        TopologyCommand::Diff(args) => {
            let wanted = args.declarations.read().await?;
            diff::run(&args.pubsub.connect().await?, &wanted, output).await
        }
        TopologyCommand::Apply(args) => {
            let wanted = args.declarations.read().await?;
            apply::run(&args.pubsub, &wanted, output).await
        }
    }
}
