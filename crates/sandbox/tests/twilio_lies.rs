//! Lies about conversations, and what the journal keeps of them.

mod stand;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use backline_sandbox::Config;
use reqwest::Method;
use serde_json::{Value, json};
use stand::{Stand, answer};

/// Identities of the members, lags ignored.
async fn members(stand: &Stand, sid: &str) -> Result<Vec<String>> {
    let (_, report) = stand.get("/twilio").await?;
    let rooms = report["conversations"].as_array().context("conversations")?;
    let room = rooms.iter().find(|room| room["sid"] == sid).context("room")?;
    let members = room["participants"].as_array().context("participants")?;
    Ok(members.iter().filter_map(|member| member["identity"].as_str().map(str::to_owned)).collect())
}

#[tokio::test]
async fn an_effect_exists_or_not_whatever_the_answer_says() -> Result<()> {
    let cases = [
        (json!({"kind": "drop_reply"}), None, true),
        (json!({"kind": "drop_before"}), None, false),
        (json!({"kind": "stored_error", "status": 500, "applied": true}), Some((500, 20500)), true),
        (json!({"kind": "stored_error", "status": 503}), Some((503, 20503)), false),
        (
            json!({"kind": "rate_limited", "reason": "x", "retry_after": {"seconds": 3}}),
            Some((429, 20429)),
            false,
        ),
        (json!({"kind": "unauthorized"}), Some((401, 20003)), false),
        (json!({"kind": "refuse", "status": 409, "code": "50416"}), Some((409, 50416)), false),
        (json!({"kind": "in_use"}), Some((501, 20501)), false),
    ];
    for (fault, expected, applied) in cases {
        let stand = Stand::default().await?;
        let sid = stand.conversation("a").await?;
        let rule =
            json!({"match": {"provider": "twilio", "kind": "participant.add"}, "times": 1, "fault": fault});
        stand.faults(rule).await?;
        match (stand.join(&sid, "user-1").send().await, expected) {
            (Ok(reply), Some((status, code))) => {
                let wait = reply.headers().get("retry-after").map(|value| value.as_bytes());
                assert_eq!(wait, (status == 429).then_some(b"3".as_slice()), "{fault}");
                let (got, body) = stand::read(reply).await?;
                assert_eq!((got, body["code"].as_u64()), (status, Some(code)), "{fault}");
            }
            (Err(_), None) => {}
            (other, _) => anyhow::bail!("{fault}: {other:?}"),
        }
        assert_eq!(members(&stand, &sid).await?.len(), usize::from(applied), "{fault}");
        assert_eq!(stand.fired().await?, [1], "{fault}");
    }
    Ok(())
}

#[tokio::test]
async fn bodies_that_cannot_be_read_leave_their_effect() -> Result<()> {
    for fault in [
        json!({"kind": "garbage"}),
        json!({"kind": "truncated"}),
        json!({"kind": "html", "status": 200}),
        json!({"kind": "bad_text", "text": "emoji_cut"}),
    ] {
        let stand = Stand::default().await?;
        let sid = stand.conversation("a").await?;
        stand.faults(json!({"match": {"kind": "participant.add"}, "fault": fault})).await?;
        let text = stand.join(&sid, "user-1").send().await?.bytes().await?;
        assert!(serde_json::from_slice::<Value>(&text).is_err(), "{fault}");
        assert_eq!(members(&stand, &sid).await?, ["user-1"], "{fault}");
    }
    Ok(())
}

#[tokio::test]
async fn a_list_lags_behind_writes_in_both_directions() -> Result<()> {
    let stand = Stand::default().await?;
    let sid = stand.conversation("a").await?;
    let (_, kept) = answer(stand.join(&sid, "user-1")).await?;
    stand.faults(json!({"match": {"provider": "twilio"}, "fault": {"kind": "hide", "for": "1h"}})).await?;
    let listed = async || -> Result<Vec<Value>> {
        let path = format!("/{sid}/Participants");
        let (_, page) = answer(stand.twilio(Method::GET, &path, &[])).await?;
        let members = page["participants"].as_array().context("participants")?;
        Ok(members.iter().map(|member| member["identity"].clone()).collect())
    };
    let gone = format!("/{sid}/Participants/{}", kept["sid"].as_str().context("sid")?);
    assert_eq!(stand.twilio(Method::DELETE, &gone, &[]).send().await?.status(), 204);
    assert_eq!(stand.join(&sid, "user-2").send().await?.status(), 201);
    assert_eq!(listed().await?, ["user-1"]);
    // Writes do not lag: what was removed is gone, what was added is there.
    assert_eq!(stand.twilio(Method::DELETE, &gone, &[]).send().await?.status(), 404);
    assert_eq!(stand.join(&sid, "user-2").send().await?.status(), 409);
    // A new conversation is missing to everybody for a moment (field case 85).
    let fresh = stand.conversation("b").await?;
    assert_eq!(stand.join(&fresh, "user-1").send().await?.status(), 404);
    stand.control(json!({"action": "clock_forward", "by": "2h"})).await?;
    assert_eq!(listed().await?, ["user-2"]);
    assert_eq!(stand.join(&fresh, "user-1").send().await?.status(), 201);
    Ok(())
}

#[tokio::test]
async fn the_journal_names_who_was_in_flight_and_who_had_given_up() -> Result<()> {
    let stand = Stand::default().await?;
    let (one, two) = (stand.conversation("one").await?, stand.conversation("two").await?);
    stand
        .faults(json!([
            {"match": {"kind": "participant.add", "key": one}, "times": 1, "fault": {"kind": "slow", "delay": "400ms"}},
            {"match": {"kind": "participant.add", "key": two}, "times": 1, "fault": {"kind": "late", "apply_after": "400ms"}},
        ]))
        .await?;
    let slow = tokio::spawn(answer(stand.join(&one, "user-1")));
    let late = stand.join(&two, "user-1").timeout(Duration::from_millis(50)).send().await;
    assert!(late.is_err_and(|error| error.is_timeout()));
    stand.until("/ledger", |_, ledger| ledger["held"] == 2).await?;
    answer(stand.join(&one, "user-2")).await?;
    answer(stand.join(&two, "user-2")).await?;
    assert_eq!(slow.await??.0, 201);
    stand.until("/ledger", |_, ledger| ledger["held"] == 0).await?;
    assert_eq!(members(&stand, &one).await?, ["user-2", "user-1"]);
    assert_eq!(members(&stand, &two).await?, ["user-2", "user-1"]);

    let journal = stand.journal().await?;
    let adds: Vec<&Value> = journal.iter().filter(|line| line["kind"] == "participant.add").collect();
    for (sid, abandoned) in [(&one, Value::Null), (&two, json!(true))] {
        let of = |was_held: bool| {
            adds.iter().find(|line| {
                line["conversation"] == **sid
                    && line["was_held"].as_bool().unwrap_or(false) == was_held
                    && line["replied"] != "held"
            })
        };
        let (held, quick) = (of(true).context("held")?, of(false).context("quick")?);
        assert_eq!(quick["overlaps"], json!([held["seq"]]));
        assert_eq!((&held["abandoned"], &held["applied"]), (&abandoned, &json!(true)));
        assert_eq!((&held["provider"], &held["operation_id"]), (&json!("twilio"), &json!("op_1")));
        let time = |line: &Value, name: &str| line[name].as_str().map(str::to_owned);
        assert!(
            time(held, "received_at") < time(quick, "received_at") && time(quick, "at") < time(held, "at")
        );
    }
    Ok(())
}

#[tokio::test]
async fn a_storm_of_calls_is_refused_whole_and_nothing_of_it_applies() -> Result<()> {
    let stand = Stand::default().await?;
    let sid = stand.conversation("a").await?;
    stand
        .faults(json!({
            "rules": [{"match": {"kind": "participant.add"}, "times": 1, "fault": {"kind": "slow", "delay": "1s"}}],
            "limiter": {"per_second": 1000.0, "max_concurrent": 1, "path": "/v1/Conversations", "retry_after": {"seconds": 2}},
        }))
        .await?;
    let held = tokio::spawn(answer(stand.join(&sid, "user-1")));
    stand.until("/ledger", |_, ledger| ledger["held"] == 1).await?;
    let refused = stand.join(&sid, "user-2").send().await?;
    let header = |name: &str| refused.headers().get(name).map(|value| value.as_bytes().to_vec());
    assert_eq!(header("twilio-concurrent-requests"), Some(b"2".to_vec()));
    assert_eq!((refused.status().as_u16(), header("retry-after")), (429, Some(b"2".to_vec())));
    assert_eq!(refused.json::<Value>().await?["code"], 20429);
    assert_eq!(held.await??.0, 201);
    assert_eq!(members(&stand, &sid).await?, ["user-1"]);
    Ok(())
}

#[tokio::test]
async fn a_restarted_sandbox_still_knows_every_member() -> Result<()> {
    let file = format!("sandbox-twilio-{}.ndjson", std::process::id());
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(file);
    drop(std::fs::remove_file(&path));
    let config = || Config { journal: Some(path.clone()), ..Config::default() };
    let stand = Stand::start(config()).await?;
    let (one, two) = (stand.conversation("one").await?, stand.conversation("two").await?);
    answer(stand.join(&one, "user-1")).await?;
    answer(stand.join(&one, "user-2")).await?;
    let gone = format!("/{one}/Participants/user-1");
    stand.twilio(Method::DELETE, &gone, &[]).send().await?;
    stand.twilio(Method::DELETE, &format!("/{two}"), &[]).send().await?;
    stand.control(json!({"action": "clock_forward", "by": "1h"})).await?;
    stand
        .control(
            json!({"action": "participant", "conversation": "one", "identity": "user-3", "present": true}),
        )
        .await?;
    stand.control(json!({"action": "conversation", "id": "one", "becomes": "inactive"})).await?;
    answer(stand.transfer("op_2", "5")).await?;
    let (_, before) = stand.get("/twilio").await?;
    stand.stop().await;

    let stand = Stand::start(config()).await?;
    assert_eq!(stand.get("/twilio").await?.1, before);
    assert_eq!(members(&stand, &one).await?, ["user-2", "user-3"]);
    assert_eq!(stand.applied("op_2").await?, (1, 5));
    std::fs::remove_file(&path)?;
    Ok(())
}
