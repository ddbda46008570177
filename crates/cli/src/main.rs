//! `backline`: the command of operators and developers.

mod args;
mod bench;
mod db;
mod demo;
mod dev;
mod doctor;
mod explain;
mod migrate;
mod ops;
mod output;
mod pause;
mod pubsub;
mod topology;

use anyhow::Context;
use args::{Args, Command};
use backline_outbox::{AccessError, remedy};
use clap::Parser;
use output::Output;
use std::process::ExitCode;

/// What a command found: `Bad` is an answer (something fails its check), an error is the lack of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Good,
    Bad,
}

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    let output = Output::new(args.json);
    // As `diff` has it: 1 is an answer, 2 the lack of one. Scripts that act on a difference must tell them apart.
    let no_answer = if matches!(args.command, Command::Topology { .. }) { 2 } else { 1 };
    match run(args, &output).await {
        Ok(Verdict::Good) => ExitCode::SUCCESS,
        Ok(Verdict::Bad) => ExitCode::FAILURE,
        Err(error) => {
            output.error(&explained(error));
            ExitCode::from(no_answer)
        }
    }
}

/// With what to do about it, where the way to the database is what failed.
fn explained(error: anyhow::Error) -> anyhow::Error {
    // What has passed `AccessError` says so itself.
    if error.downcast_ref::<AccessError>().is_some() {
        return error;
    }
    let remedy = error.chain().find_map(|cause| remedy(cause.downcast_ref::<sqlx::Error>()?));
    match remedy {
        Some(remedy) => error.context(remedy),
        None => error,
    }
}

async fn run(args: Args, output: &Output) -> anyhow::Result<Verdict> {
    let (url, json) = (args.database_url, args.json);
    match args.command {
        Command::Migrate => migrate::run(&db::connect(url.as_deref()).await?, output).await,
        Command::Doctor(args) => doctor::run(url.as_deref(), args, output).await,
        Command::Ops { command } => ops::run(&db::connect(url.as_deref()).await?, command, output).await,
        Command::Explain(args) => explain::run(&db::connect(url.as_deref()).await?, &args, output).await,
        Command::Pause(args) => pause::pause(&db::connect(url.as_deref()).await?, args, output).await,
        Command::Resume(args) => pause::resume(&db::connect(url.as_deref()).await?, args, output).await,
        Command::Topology { command } => topology::run(command, output).await,
        Command::Dev(args) => dev::run(args, output).await,
        Command::Demo(args) => demo::run(args, output).await,
        Command::Bench(args) => {
            let met = bench::run(url.as_deref(), &args, json).await?;
            Ok(if met { Verdict::Good } else { Verdict::Bad })
        }
        Command::BenchWorker(args) => {
            bench::work(&url.context("DATABASE_URL is not set")?, args).await.map(|()| Verdict::Good)
        }
    }
}
