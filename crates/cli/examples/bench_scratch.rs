//! scratch
#[path = "../src/bench/mod.rs"]
mod bench;
use clap::Parser;
#[derive(Parser)]
struct Args {
    #[arg(long, global = true)]
    json: bool,
    #[arg(long, env = "DATABASE_URL", global = true)]
    database_url: Option<String>,
    #[command(subcommand)]
    command: Cmd,
}
#[derive(clap::Subcommand)]
enum Cmd { Bench(bench::BenchArgs), BenchWorker(bench::WorkerArgs) }
#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    match args.command {
        Cmd::Bench(b) => { bench::run(args.database_url.as_deref(), &b, args.json).await?; }
        Cmd::BenchWorker(w) => bench::work(args.database_url.as_deref().unwrap_or_default(), w).await?,
    }
    Ok(())
}
