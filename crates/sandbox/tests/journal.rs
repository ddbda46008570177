//! A killed sandbox keeps its effects: everything a caller may have heard of is in the journal.

mod stand;

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result};
use backline_sandbox::{Config, Sandbox};
use serde_json::{Value, json};
use stand::{Stand, answer, header};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// A journal path of its own, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let file = format!("sandbox-{name}-{}.ndjson", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(file);
        drop(std::fs::remove_file(&path));
        Self(path)
    }

    fn config(&self) -> Config {
        Config { journal: Some(self.0.clone()), ..Config::default() }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.0));
    }
}

/// The real binary, killed when dropped.
async fn spawn(journal: &Path) -> Result<(Child, Stand)> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_backline-sandbox"))
        .args(["--listen", "127.0.0.1:0", "--settle-after", "50ms", "--journal"])
        .arg(journal)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut lines = BufReader::new(child.stdout.take().context("stdout")?).lines();
    let first = lines.next_line().await?.context("no line")?;
    let address = first.strip_prefix("listening on ").context("unexpected first line")?;
    Ok((child, Stand::at(format!("http://{address}"))?))
}

#[tokio::test]
async fn a_killed_process_forgets_nothing_it_told() -> Result<()> {
    let scratch = Scratch::new("killed");
    let (mut child, stand) = spawn(&scratch.0).await?;
    stand
        .faults(json!([
            {"match": {"operation_id": "lost"}, "times": 1, "fault": {"kind": "drop_reply"}},
            {"match": {"operation_id": "broken"}, "times": 1, "fault": {"kind": "stored_error", "status": 500}},
            {"match": {"operation_id": "held"}, "times": 1, "fault": {"kind": "slow", "delay": "1h"}},
        ]))
        .await?;
    let told = stand.transfer("told", "500").send().await?.text().await?;
    assert!(stand.transfer("lost", "7").send().await.is_err());
    assert_eq!(stand.transfer("broken", "8").send().await?.status(), 500);
    let transfer: Value = serde_json::from_str(&told)?;
    let reversals = format!("/v1/transfers/{}/reversals", transfer["id"].as_str().context("id")?);
    answer(stand.post(&reversals, &[("amount", "100")]).header("idempotency-key", "back")).await?;
    let form = [("amount", "10"), ("currency", "usd"), ("expand[]", "balance_transaction")];
    let payout =
        stand.post("/v1/payouts", &form).header("idempotency-key", "p").header("stripe-account", "acct_9");
    let payout = payout.send().await?.text().await?;
    let held = tokio::spawn(stand.transfer("held", "9").send());
    stand.until("/ledger", |_, ledger| ledger["operations"]["held"]["calls"] == 1).await?;
    stand.control(json!({"action": "clock_forward", "by": "3h"})).await?;
    let (_, before) = stand.get("/ledger").await?;
    child.start_kill()?;
    child.wait().await?;
    assert!(held.await?.is_err());

    let (_child, stand) = spawn(&scratch.0).await?;
    let (_, after) = stand.get("/ledger").await?;
    for field in ["totals", "operations", "posts", "gets"] {
        assert_eq!(before[field], after[field], "{field}");
    }
    assert_eq!(stand.transfer("told", "500").send().await?.text().await?, told);
    let again =
        stand.post("/v1/payouts", &form).header("idempotency-key", "p").header("stripe-account", "acct_9");
    assert_eq!(again.send().await?.text().await?, payout);
    let broken = stand.transfer("broken", "8").send().await?;
    assert_eq!(
        (broken.status().as_u16(), header(&broken, "idempotent-replayed").as_deref()),
        (500, Some("true"))
    );
    let found = stand.transfer("lost", "7").send().await?;
    assert_eq!(header(&found, "idempotent-replayed").as_deref(), Some("true"));
    let (_, reversed) = stand.get(&reversals).await?;
    assert_eq!(reversed["data"][0]["amount"], 100);
    // What was held was never applied, and its key is free.
    assert_eq!(answer(stand.transfer("held", "9")).await?.0, 200);
    assert_eq!(stand.applied("held").await?, (1, 9));
    assert_eq!(stand.control(json!({"action": "prune_keys"})).await?["clock_shift_ms"], 3 * 3_600 * 1_000);
    Ok(())
}

#[tokio::test]
async fn a_torn_last_line_is_cut_off_and_a_foreign_one_refused() -> Result<()> {
    let scratch = Scratch::new("torn");
    let stand = Stand::start(scratch.config()).await?;
    answer(stand.transfer("op_1", "5")).await?;
    stand.stop().await;
    let whole = std::fs::read(&scratch.0)?;
    let mut torn = whole.clone();
    torn.extend_from_slice("{\"seq\":2,\"at\":\"20é".as_bytes());
    std::fs::write(&scratch.0, &torn[..torn.len() - 1])?;
    let stand = Stand::start(scratch.config()).await?;
    assert_eq!(std::fs::read(&scratch.0)?, whole);
    answer(stand.transfer("op_2", "5")).await?;
    let seqs: Vec<Value> = stand.journal().await?.iter().map(|line| line["seq"].clone()).collect();
    assert_eq!(seqs, [1, 2]);
    stand.stop().await;
    std::fs::write(&scratch.0, b"not ours\n")?;
    let refused = Sandbox::start(scratch.config()).await;
    assert!(refused.is_err_and(|error| error.to_string().contains("line 1")));
    Ok(())
}

#[tokio::test]
async fn a_line_says_who_asked_for_what_and_what_came_of_it() -> Result<()> {
    let stand = Stand::default().await?;
    answer(stand.transfer("op_1", "500")).await?;
    answer(stand.transfer("op_1", "500")).await?;
    answer(stand.transfer("op_2", "0")).await?;
    stand.get("/v1/transfers?transfer_group=op_1").await?;
    let journal = stand.journal().await?;
    let [created, replayed, refused, listed] = journal.as_slice() else {
        anyhow::bail!("expected four lines, got {}", journal.len());
    };
    for (field, value) in [
        ("kind", json!("transfer")),
        ("operation_id", json!("op_1")),
        ("key", json!("op_1")),
        ("received", json!(true)),
        ("applied", json!(true)),
        ("replied", json!(200)),
        ("amount", json!(500)),
        ("currency", json!("usd")),
    ] {
        assert_eq!(created[field], value, "{field}");
    }
    assert_eq!(created["params_hash"], replayed["params_hash"]);
    assert_eq!((&replayed["applied"], &replayed["replayed"]), (&json!(false), &json!(true)));
    assert_eq!((&refused["applied"], &refused["replied"]), (&json!(false), &json!(400)));
    assert_eq!(
        (&listed["method"], &listed["replied"], &listed["key"]),
        (&json!("GET"), &json!(200), &Value::Null)
    );
    Ok(())
}
