//! Replies that are wrong on the wire although the effect exists.

mod stand;

use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::{Value, json};
use stand::{Stand, answer, header};

/// Sends a transfer that the rule hits and hands back the status, the type and the raw body.
async fn lied_to(stand: &Stand, operation: &str, fault: Value) -> Result<(u16, String, Vec<u8>)> {
    stand
        .faults(json!({"match": {"operation_id": operation, "method": "POST"}, "times": 1, "fault": fault}))
        .await?;
    let reply = stand.transfer(operation, "5").send().await?;
    let kind = header(&reply, "content-type").unwrap_or_default();
    Ok((reply.status().as_u16(), kind, reply.bytes().await?.to_vec()))
}

#[tokio::test]
async fn wrong_bodies_hide_a_true_effect() -> Result<()> {
    let stand = Stand::default().await?;
    let cases = [
        (json!({"kind": "garbage"}), 200, "application/json"),
        (json!({"kind": "truncated"}), 200, "application/json"),
        (json!({"kind": "html", "status": 200}), 200, "text/html"),
        (json!({"kind": "html"}), 502, "text/html"),
        (json!({"kind": "bad_text", "text": "emoji_cut"}), 502, "application/json"),
        (json!({"kind": "bad_text", "text": "lone_surrogate", "status": 400}), 400, "application/json"),
    ];
    for (n, (fault, status, kind)) in cases.into_iter().enumerate() {
        let operation = format!("op_{n}");
        let (seen, seen_kind, body) = lied_to(&stand, &operation, fault.clone()).await?;
        assert_eq!((seen, seen_kind.as_str()), (status, kind), "{fault}");
        assert!(serde_json::from_slice::<Value>(&body).is_err(), "{fault} parses");
        assert_eq!(stand.applied(&operation).await?, (1, 5));
        assert_eq!(answer(stand.transfer(&operation, "5")).await?.0, 200, "the truth is stored for the key");
        assert_eq!(stand.applied(&operation).await?, (1, 5));
    }
    Ok(())
}

#[tokio::test]
async fn error_texts_may_be_huge_or_carry_a_nul() -> Result<()> {
    let stand = Stand::default().await?;
    let (status, _, body) = lied_to(&stand, "huge", json!({"kind": "huge_error"})).await?;
    assert!(status == 502 && body.len() > 2_000_000);
    let (_, _, body) = lied_to(&stand, "nul", json!({"kind": "bad_text", "text": "nul"})).await?;
    let parsed: Value = serde_json::from_slice(&body)?;
    assert_eq!(parsed["error"]["message"], "before\u{0}after");
    Ok(())
}

#[tokio::test]
async fn a_proxy_error_may_come_without_an_effect() -> Result<()> {
    let stand = Stand::default().await?;
    let (status, ..) = lied_to(&stand, "op_1", json!({"kind": "html", "applied": false})).await?;
    assert_eq!((status, stand.applied("op_1").await?), (502, (0, 0)));
    assert_eq!(answer(stand.transfer("op_1", "5")).await?.0, 200);
    assert_eq!(stand.applied("op_1").await?, (1, 5));
    Ok(())
}

#[tokio::test]
async fn a_reply_drips_or_is_cut_in_the_middle() -> Result<()> {
    let stand = Stand::default().await?;
    let began = Instant::now();
    let (status, _, body) =
        lied_to(&stand, "drip", json!({"kind": "drip", "chunk": 100, "every": "20ms"})).await?;
    assert_eq!(status, 200);
    let pieces = u32::try_from(body.len().div_ceil(100))?;
    assert!(began.elapsed() >= Duration::from_millis(20) * pieces);
    assert!(serde_json::from_slice::<Value>(&body).is_ok());

    stand.faults(json!({"match": {"operation_id": "cut"}, "times": 1, "fault": {"kind": "reset", "after_bytes": 10}})).await?;
    let mut reply = stand.transfer("cut", "5").send().await?;
    assert_eq!(reply.status(), 200);
    assert_eq!(reply.chunk().await?.map(|piece| piece.len()), Some(10));
    assert!(reply.chunk().await.is_err());
    assert_eq!(stand.applied("cut").await?, (1, 5));
    Ok(())
}
