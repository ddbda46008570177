//! `backline demo`.
use crate::Verdict; use crate::output::Output;
#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {}
pub(crate) async fn run(_args: DemoArgs, _output: &Output) -> anyhow::Result<Verdict> { Ok(Verdict::Good) }
