//! `backline ops`: what operators see of operations and may decide about them.

mod apply;
mod decision;
mod follow;
mod list;
mod show;

use crate::Verdict;
use crate::output::Output;
use clap::{Args, Subcommand, ValueEnum};
use decision::Action;
use sqlx::PgPool;
use uuid::Uuid;

#[derive(Debug, Subcommand)]
pub(crate) enum OpsCommand {
    /// List unfinished operations, those that need a person first.
    Ls(list::ListArgs),
    /// Show one operation with its attempts, outcomes and decisions.
    Show {
        /// Operation id.
        id: Uuid,
    },
    /// Make a dead operation ready again: same id, attempts from zero.
    Retry(DecisionArgs),
    /// Ask to cancel: honored only while nothing can have been applied.
    Cancel(DecisionArgs),
    /// Give a dead operation up; its serial key is released.
    Discard(DecisionArgs),
    /// Decide what became of a manual operation, with the provider's evidence.
    Resolve(ResolveArgs),
}

#[derive(Debug, Args)]
pub(crate) struct DecisionArgs {
    /// Operation id.
    pub(crate) id: Uuid,
    /// Why; kept in the audit.
    #[arg(long)]
    pub(crate) reason: String,
    /// Who decides.
    #[arg(long, env = "USER")]
    pub(crate) actor: String,
    /// Second person, required for irreversible kinds.
    #[arg(long)]
    pub(crate) approved_by: Option<String>,
    /// Only show what would be done.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ResolveArgs {
    #[command(flatten)]
    pub(crate) decision: DecisionArgs,
    /// What the provider says.
    #[arg(long = "as", value_enum)]
    pub(crate) resolution: ResolveAs,
    /// The provider's facts as a JSON object. For `applied` they become the outcome's output, so give what the
    /// handler would have returned, such as the object's id.
    #[arg(long)]
    pub(crate) evidence: String,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ResolveAs {
    /// The effect exists: the operation succeeded.
    Applied,
    /// The effect does not exist and no request is on its way: it is submitted again, under a new key.
    NotApplied,
}

pub(crate) async fn run(pool: &PgPool, command: OpsCommand, output: &Output) -> anyhow::Result<Verdict> {
    let (args, action) = match command {
        OpsCommand::Ls(args) => return list::run(pool, args, output).await,
        OpsCommand::Show { id } => return show::run(pool, id, output).await,
        OpsCommand::Retry(args) => (args, Action::Retry),
        OpsCommand::Cancel(args) => (args, Action::Cancel),
        OpsCommand::Discard(args) => (args, Action::Discard),
        OpsCommand::Resolve(args) => {
            let evidence = decision::evidence(&args.evidence)?;
            let action = match args.resolution {
                ResolveAs::Applied => Action::Applied { evidence },
                ResolveAs::NotApplied => Action::NotApplied { evidence },
            };
            (args.decision, action)
        }
    };
    apply::run(pool, args, action, output).await
}
