//! The page that teaches how to write a worker shows what is compiled and run, and a worker stays as small as it says.

use anyhow::Context;
use backline_dev_cluster::paths::workspace;
use std::fs;
use std::path::Path;

/// What the page shows whole.
const SHOWN: [&str; 2] = ["examples/webhook/Cargo.toml", "examples/webhook/src/main.rs"];

/// Where its other pieces of Rust come from.
const QUOTED: [&str; 3] = [
    "crates/runtime/examples/first_worker.rs",
    "crates/runtime/tests/runtime/eager.rs",
    "workers/twilio/src/create.rs",
];

/// The third worker, with its `main` and its `Cargo.toml`, has fewer lines than this that are not blank.
const LIMIT: usize = 100;

/// Everything but spaces at the edges of lines: a quotation is moved to the margin.
fn flush(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_page_shows_what_is_compiled() -> anyhow::Result<()> {
    let root = workspace()?;
    let page = fs::read_to_string(root.join("docs/writing-a-worker.md"))?;
    for file in SHOWN {
        let language = if file.ends_with(".toml") { "toml" } else { "rust" };
        let block = format!("```{language}\n{}```\n", fs::read_to_string(root.join(file))?);
        anyhow::ensure!(page.contains(&block), "docs/writing-a-worker.md does not show {file} as it is");
    }
    let compiled: Vec<String> = SHOWN
        .iter()
        .chain(&QUOTED)
        .map(|file| fs::read_to_string(root.join(file)).map(|text| flush(&text)).context(*file))
        .collect::<Result<_, _>>()?;
    for block in page.split("```rust\n").skip(1) {
        let block = flush(block.split("```").next().unwrap_or_default());
        let block = block.trim_end();
        anyhow::ensure!(compiled.iter().any(|text| text.contains(block)), "nothing compiled reads:\n{block}");
    }
    Ok(())
}

/// Lines of one file: of code, that are not blank, and all.
#[derive(Clone, Copy, Default)]
struct Lines([usize; 3]);

impl Lines {
    fn of(path: &Path) -> anyhow::Result<Lines> {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let comment = match path.extension().and_then(|extension| extension.to_str()) {
            Some("rs") => "//",
            Some("sql") => "--",
            _ => "#",
        };
        let filled: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let code = filled.iter().filter(|line| !line.starts_with(comment)).count();
        Ok(Lines([code, filled.len(), text.lines().count()]))
    }

    fn and(self, other: Lines) -> Lines {
        Lines([0, 1, 2].map(|n| self.0[n] + other.0[n]))
    }

    fn row(self, name: &str) {
        let [code, filled, all] = self.0;
        println!("{name:<48} {code:>6} {filled:>9} {all:>6}");
    }
}

/// Prints every file of a worker and returns their sum.
fn worker(root: &Path, folder: &str) -> anyhow::Result<Lines> {
    let mut files = vec![root.join(folder).join("Cargo.toml")];
    for inner in ["src", "sql"].map(|inner| root.join(folder).join(inner)) {
        for entry in fs::read_dir(inner).into_iter().flatten() {
            files.push(entry?.path());
        }
    }
    files.sort();
    let mut sum = Lines::default();
    for file in files {
        let lines = Lines::of(&file)?;
        lines.row(&file.strip_prefix(root)?.display().to_string());
        sum = sum.and(lines);
    }
    sum.row(&format!("{folder}, together"));
    println!();
    Ok(sum)
}

/// Prints the lines of each worker (`.config/nextest.toml` shows them also when it passes), so that a contract that
/// asks for more of its authors is noticed.
#[test]
fn lines_per_worker() -> anyhow::Result<()> {
    let root = workspace()?;
    println!("{:<48} {:>6} {:>9} {:>6}", "lines", "code", "not blank", "all");
    worker(&root, "workers/payments")?;
    worker(&root, "workers/twilio")?;
    let Lines([_, third, _]) = worker(&root, "examples/webhook")?;
    anyhow::ensure!(
        third < LIMIT,
        "the worker of docs/writing-a-worker.md has {third} lines; promised: under {LIMIT}"
    );
    Ok(())
}
