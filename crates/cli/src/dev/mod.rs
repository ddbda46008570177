//! `backline dev`.
use crate::Verdict; use crate::output::Output;
#[derive(Debug, clap::Args)]
pub(crate) struct DevArgs {}
pub(crate) async fn run(_args: DevArgs, _output: &Output) -> anyhow::Result<Verdict> { Ok(Verdict::Good) }
