//! Where declarations come from: the workers themselves, or what they said earlier.

use anyhow::{Context, ensure};
use backline_broker::Topology;
use backline_dev_cluster::paths;
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

/// A worker answers before it connects to anything.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);

/// What is declared, by whom.
#[derive(Debug, Clone, Args)]
pub(crate) struct Declarations {
    /// A worker's program, asked with `--topology` in this environment; may be repeated.
    #[arg(long = "worker", value_name = "PROGRAM")]
    workers: Vec<PathBuf>,
    /// A file with what a worker printed at `--topology`, or `-` for standard input; may be repeated.
    #[arg(long = "declaration", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// A topic that producers name and no worker reads; may be repeated.
    #[arg(long = "topic", value_name = "ID")]
    topics: Vec<String>,
}

impl Declarations {
    /// Whether anything is declared.
    pub(crate) fn is_given(&self) -> bool {
        !(self.workers.is_empty() && self.files.is_empty() && self.topics.is_empty())
    }

    /// Everything declared, as one.
    pub(crate) async fn read(&self) -> anyhow::Result<Topology> {
        ensure!(
            self.is_given(),
            "nothing is declared: give --worker PROGRAM, --declaration FILE or --topic ID"
        );
        let mut parts = Vec::new();
        for worker in &self.workers {
            parts.push(ask(worker).await.with_context(|| format!("--worker {}", worker.display()))?);
        }
        for file in &self.files {
            parts.push(load(file).with_context(|| format!("--declaration {}", file.display()))?);
        }
        parts.push(Topology { topics: self.topics.clone(), ..Topology::default() });
        Ok(Topology::merged(parts)?)
    }
}

fn load(file: &Path) -> anyhow::Result<Topology> {
    let text = if file == Path::new("-") {
        std::io::read_to_string(std::io::stdin())?
    } else {
        std::fs::read_to_string(file)?
    };
    serde_json::from_str(&text).context("is no declaration")
}

/// Runs the worker for its answer. It connects to nothing, so a database that is not named here is no obstacle.
async fn ask(worker: &Path) -> anyhow::Result<Topology> {
    let mut command = Command::new(program(worker));
    command.arg("--topology").env("RUST_BACKTRACE", "0").stdin(Stdio::null()).kill_on_drop(true);
    if std::env::var_os("DATABASE_URL").is_none() {
        command.env("DATABASE_URL", "postgres://");
    }
    let answer = tokio::time::timeout(ANSWER_LIMIT, command.output())
        .await
        .context("no answer to --topology within 20s")?
        .context("cannot be run")?;
    let said = String::from_utf8_lossy(&answer.stderr);
    ensure!(
        answer.status.success(),
        "ended with {}; settings that it requires may have any value of the right form here:\n{}",
        answer.status,
        said.trim_end()
    );
    serde_json::from_slice(&answer.stdout).context("its answer to --topology is no declaration")
}

/// A bare name is looked for beside this program first, where a build and an image have them together.
fn program(worker: &Path) -> PathBuf {
    let bare = worker.components().count() == 1;
    let beside = worker.to_str().filter(|_| bare).and_then(|name| paths::binary(name).ok());
    beside.unwrap_or_else(|| worker.to_owned())
}
