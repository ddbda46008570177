//! Where declarations come from, and settings that are refused.

use crate::support::{Setup, answer, declaration, declared, file};
use anyhow::Result;
use backline_broker::Topology;
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use tokio::process::Command;

/// A program that answers `--topology` and nothing else.
fn worker(answer: &str) -> Result<String> {
    let script = format!("#!/bin/sh\ntest \"$1\" = --topology && test -n \"$DATABASE_URL\" && {answer}\n");
    let path = file("worker", &script)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
    Ok(path.display().to_string())
}

#[tokio::test]
async fn workers_are_asked_and_topics_without_a_reader_are_added() -> Result<()> {
    let setup = Setup::new().await?;
    let program = worker(&format!("cat {}", declaration(&declared())?))?;
    let show = setup.backline(&["topology", "show", "--worker", &program, "--topic", "audit"]).await?;
    let whole: Topology = serde_json::from_value(show.json)?;
    assert_eq!(whole.topics, ["audit", "events", "events.letters.dead"]);
    assert_eq!(whole.declared_by, "letters");
    Ok(())
}

#[tokio::test]
async fn without_an_answer_nothing_is_done_and_the_exit_code_tells_it_from_a_difference() -> Result<()> {
    let setup = Setup::new().await?;
    let program = worker("echo STRIPE_API_KEY is missing >&2; exit 2")?;
    let unsaid = setup.backline(&["topology", "diff", "--worker", &program]).await?;
    let error = unsaid.json["error"].as_str().unwrap_or_default();
    assert_eq!(unsaid.code, Some(2));
    assert!(error.contains(&program) && error.contains("STRIPE_API_KEY is missing"), "{error}");

    let bare = setup.backline(&["topology", "apply"]).await?;
    assert!(bare.json["error"].as_str().is_some_and(|error| error.contains("--worker")), "{bare:?}");
    let odd =
        file("odd.json", r#"{"subscriptions": [{"subscription": "abc", "topic": "events", "colour": 1}]}"#)?;
    let odd = setup.backline(&["topology", "apply", "--declaration", &odd.display().to_string()]).await?;
    assert!(odd.json["error"].as_str().is_some_and(|error| error.contains("colour")), "{odd:?}");
    assert!(!setup.broker.has_topic("events").await?);
    Ok(())
}

#[tokio::test]
async fn a_declaration_by_hand_needs_only_names() -> Result<()> {
    let setup = Setup::new().await?;
    let text = json!({"subscriptions": [{"subscription": "events.audit", "topic": "events"}]}).to_string();
    let file = file("hand.json", &text)?.display().to_string();
    assert_eq!(setup.backline(&["topology", "apply", "--declaration", &file]).await?.code, Some(0));
    assert_eq!(setup.broker.subscriptions_of("events").await?, Some(vec!["events.audit".to_owned()]));
    Ok(())
}

#[tokio::test]
async fn settings_of_the_broker_that_cannot_work_are_refused_by_name() -> Result<()> {
    let cases = [
        ("PUBSUB_EMULATOR_HOST", ""),
        ("PUBSUB_EMULATOR_HOST", "http://127.0.0.1:8085"),
        ("PUBSUB_PROJECT_ID", ""),
        ("PUBSUB_PROJECT_ID", "a/b"),
    ];
    for (name, value) in cases {
        let mut command = Command::new(env!("CARGO_BIN_EXE_backline"));
        command.args(["topology", "diff", "--topic", "events"]);
        command.env_remove("PUBSUB_EMULATOR_HOST").env("PUBSUB_PROJECT_ID", "project").env(name, value);
        let refused = answer(command).await?;
        assert_eq!(refused.code, Some(2));
        assert!(refused.stderr.contains(&format!("{name}: ")), "{name}={value:?}: {}", refused.stderr);
    }
    Ok(())
}
