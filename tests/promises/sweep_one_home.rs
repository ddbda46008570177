//! Boundaries emit crash points by construction: transactions, publications and provider calls have one home each.
//!
//! Clippy refuses the same calls by type (`clippy.toml`); this reads the sources, so that an `#[expect]` in the wrong
//! place, or a crate that Clippy's list does not know, is found as well.

use backline_dev_cluster::paths::workspace;
use std::fs;
use std::path::{Path, PathBuf};

/// What must not be written outside its home, and the homes, as parts of paths.
const RULES: &[(&[&str], &[&str])] = &[
    (&[".begin(", ".begin_with(", ".commit(", "raw_sql("], &["crates/outbox/src/run_tx.rs"]),
    (&["google_cloud_pubsub"], &["crates/broker/src/"]),
    (&["reqwest::"], &["crates/providers/"]),
    (
        &["http.execute(", ".send().await"],
        // Topics and subscriptions, made by hand or on an emulator: nothing durable of ours hangs on them.
        &[
            "/src/transport",
            "crates/broker/src/admin.rs",
            "crates/broker/src/mend.rs",
            "crates/broker/src/grants.rs",
        ],
    ),
    (
        &["backline_crash_point::reach"],
        &["crates/outbox/src/run_tx.rs", "crates/broker/src/", "crates/providers/"],
    ),
];

/// What moves money and messages in production: the stand-ins, the operator's command and the tests are not.
const PRODUCT: &[&str] = &["envelope", "failure", "outbox", "broker", "relay", "runtime", "providers"];

#[test]
fn durable_effects_have_one_home_each() -> anyhow::Result<()> {
    let root = workspace()?;
    let mut files = Vec::new();
    for name in PRODUCT {
        sources(&root.join("crates").join(name), &mut files)?;
    }
    sources(&root.join("workers"), &mut files)?;
    // Workers begin as copies of it.
    sources(&root.join("examples/webhook"), &mut files)?;
    anyhow::ensure!(files.len() > 50, "only {} sources were found", files.len());
    let mut wrong = Vec::new();
    for file in &files {
        let path = file.strip_prefix(&root)?.display().to_string();
        for (number, line) in fs::read_to_string(file)?.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            for (words, homes) in RULES {
                let home = homes.iter().any(|home| path.contains(home));
                for word in words.iter().filter(|word| !home && code.contains(**word)) {
                    wrong.push(format!("{path}:{}: `{word}` outside {}", number + 1, homes.join(" or ")));
                }
            }
        }
    }
    anyhow::ensure!(wrong.is_empty(), "effects without crash points:\n{}", wrong.join("\n"));
    Ok(())
}

/// Rust sources below `src` folders of `dir`.
fn sources(dir: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default();
        if path.is_dir() && name != "tests" && name != "examples" && name != "target" {
            sources(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    Ok(())
}
