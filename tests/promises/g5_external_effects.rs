//! G5, and H4: at most one external effect where the provider has a key, within its window; elsewhere the declared
//! policy: look up first, or counted possible duplicates.
//!
//! Predicate: per operation the providers' journals hold one applied call; all calls of one submission carry one key and
//! the same bytes; a key changes only after a definite non-application.
//!
//! The races: replies lost before and after the effect, requests that apply after the caller gave up, lookups that are
//! behind, panics after the request left, and workers killed in between.

use backline_promises::check::{self, CANARY, Expected};
use backline_promises::{Look, PAYMENTS, Reply, SANDBOX, SCRIPTED, Stack, Then, eventually};
use serde_json::{Value, json};
use uuid::Uuid;

fn payment(id: &str, minor: i64) -> Value {
    let instruction =
        json!({"type": "transfer", "amount": {"minor": minor, "currency": "eur"}, "destination": "acct_x"});
    json!({"payment_id": id, "authorization": "a", "instruction": instruction})
}

#[tokio::test]
async fn a_provider_with_keys_applies_each_operation_once_whatever_happens_to_replies() -> anyhow::Result<()>
{
    let mut stack =
        Stack::builder().worker_as("first", SCRIPTED).worker_as("second", SCRIPTED).start().await?;
    // Every operation meets another sequence of answers; all of them end in an application.
    stack.effects().answer(|call, nth| {
        let turn = call.value.as_u64().and_then(|turn| usize::try_from(turn).ok()).unwrap_or(0);
        let before =
            [Reply::Lost, Reply::LostBefore, Reply::InUse, Reply::HoldThen(Then::LostBefore), Reply::Hold];
        if nth <= turn % 3 { before[(turn / 3 + nth) % 5] } else { Reply::Apply }
    });
    let organization = Uuid::now_v7();
    let mut committed = Vec::new();
    for n in 0..45 {
        let acts = if n % 7 == 0 { json!(["panic_after", "submit"]) } else { json!([]) };
        let input = json!({"value": n, "acts": acts});
        let kind = if n % 2 == 0 { "effect.keyed" } else { "effect.bare" };
        committed.push(stack.enqueue(kind, organization, &n.to_string(), input).await?);
    }
    eventually("half of the work", async || {
        Ok(stack.count("select count(*) from backline.operation_history").await? > 20)
    })
    .await?;
    stack.member("first")?.kill9()?;
    stack.member("first")?.start()?;
    stack.effects().release();
    for id in &committed {
        stack.comes_to(*id, "succeeded").await?;
        assert_eq!(stack.effects().applied(*id), 1);
    }
    stack.effects().release();
    check::settled(&stack, &Expected { committed, recoveries: 10, ..Expected::default() }).await
}

#[tokio::test]
async fn without_keys_an_applied_effect_is_found_before_anything_is_submitted_again() -> anyhow::Result<()> {
    let stack = Stack::builder().worker(SCRIPTED).start().await?;
    stack.effects().answer(|_, nth| if nth == 1 { Reply::Lost } else { Reply::Apply });
    let id = stack.enqueue("effect.plain", Uuid::now_v7(), "k", json!({"value": CANARY})).await?;
    stack.comes_to(id, "succeeded").await?;
    assert_eq!(stack.effects().calls_of(id).len(), 1, "looked up, not submitted");
    check::settled(&stack, &Expected::recovered()).await
}

#[tokio::test]
async fn without_keys_a_request_that_did_not_apply_is_submitted_anew_only_after_the_quiet_time()
-> anyhow::Result<()> {
    let stack = Stack::builder().worker(SCRIPTED).start().await?;
    stack.effects().answer(|_, nth| if nth == 1 { Reply::LostBefore } else { Reply::Apply });
    let id = stack.enqueue("effect.plain", Uuid::now_v7(), "k", json!({})).await?;
    stack.comes_to(id, "succeeded").await?;
    let calls = stack.effects().calls_of(id);
    assert_eq!(calls.iter().map(|call| call.submission).collect::<Vec<_>>(), [1, 2]);
    assert_ne!(calls[0].key, calls[1].key);
    // Request timeout plus the larger of linger and lookup lag.
    let quiet = calls[1].arrived - calls[0].arrived;
    assert!(quiet.as_millis() >= 1500, "believed after {quiet:?}");
    check::settled(&stack, &Expected::recovered()).await
}

#[tokio::test]
async fn without_keys_an_effect_that_applies_late_or_shows_late_is_still_the_only_one() -> anyhow::Result<()>
{
    let stack = Stack::builder().worker(SCRIPTED).start().await?;
    // Held past the caller's timeout; the first lookup comes back empty.
    stack.effects().answer(|_, nth| if nth == 1 { Reply::Hold } else { Reply::Apply });
    stack.effects().look(|_, nth| if nth <= 1 { Look::Absent } else { Look::Truth });
    let id = stack.enqueue("effect.plain", Uuid::now_v7(), "k", json!({})).await?;
    eventually("the first empty lookup", async || Ok(stack.effects().lookups(id) >= 1)).await?;
    stack.effects().release();
    stack.comes_to(id, "succeeded").await?;
    assert_eq!((stack.effects().calls_of(id).len(), stack.effects().applied(id)), (1, 1));
    check::settled(&stack, &Expected::recovered()).await
}

#[tokio::test]
async fn a_worker_killed_with_a_request_under_way_submits_nothing_twice_without_keys() -> anyhow::Result<()> {
    let mut stack = Stack::builder().worker(SCRIPTED).start().await?;
    stack.effects().answer(|_, nth| if nth == 1 { Reply::Hold } else { Reply::Apply });
    let id = stack.enqueue("effect.plain", Uuid::now_v7(), "k", json!({})).await?;
    eventually("the request", async || Ok(stack.effects().calls_of(id).len() == 1)).await?;
    stack.member(SCRIPTED)?.kill9()?;
    stack.effects().release();
    stack.member(SCRIPTED)?.start()?;
    stack.comes_to(id, "succeeded").await?;
    assert_eq!((stack.effects().calls_of(id).len(), stack.effects().applied(id)), (1, 1));
    check::settled(&stack, &Expected::recovered()).await
}

#[tokio::test]
async fn payments_are_made_once_through_every_lie_of_their_provider() -> anyhow::Result<()> {
    let mut stack = Stack::builder().worker(PAYMENTS).start().await?;
    let organization = Uuid::now_v7();
    let lies = [
        json!({"kind": "drop_reply"}),
        json!({"kind": "drop_before"}),
        json!({"kind": "late", "apply_after": "1200ms", "close_after": "100ms"}),
        json!({"kind": "garbage"}),
        json!({"kind": "truncated"}),
        json!({"kind": "html", "status": 200}),
        json!({"kind": "reset", "after_bytes": 10}),
        json!({"kind": "in_use"}),
        json!({"kind": "huge_error"}),
        json!({"kind": "bad_text", "text": "nul"}),
        json!({"kind": "bad_text", "text": "lone_surrogate"}),
        json!({"kind": "bad_text", "text": "emoji_cut"}),
        json!({"kind": "stored_error", "status": 500, "applied": true}),
        json!({"kind": "rate_limited", "reason": "global-rate"}),
        json!({"kind": "lock_timeout"}),
        json!({"kind": "refuse", "status": 503}),
    ];
    let mut committed = Vec::new();
    let mut rules = Vec::new();
    for (n, lie) in lies.iter().enumerate() {
        let name = format!("p{n}");
        let sql = "select backline.operation_id($1, 'stripe.transfer', $2)";
        let id: Uuid = sqlx::query_scalar(sql).bind(organization).bind(&name).fetch_one(stack.pool()).await?;
        rules.push(
            json!({"match": {"method": "POST", "operation_id": id}, "when": {"first": 1}, "fault": lie}),
        );
        committed.push((name, id));
    }
    stack.add_faults(SANDBOX, &json!({"rules": rules}))?;
    for (n, (name, _)) in committed.iter().enumerate() {
        stack.emit("PaymentAuthorized", organization, name, payment(name, 100 + i64::try_from(n)?)).await?;
    }
    for (n, (name, id)) in committed.iter().enumerate() {
        let ended = stack.comes_to(*id, "succeeded").await;
        anyhow::ensure!(ended.is_ok(), "{name} after {}: {ended:?}", lies[n]);
        let calls = stack.journal()?.into_iter().filter(|line| line["operation_id"] == id.to_string());
        assert_eq!(calls.filter(|line| line["applied"] == true).count(), 1, "{name} after {}", lies[n]);
    }
    let committed = committed.into_iter().map(|(_, id)| id).collect();
    check::settled(&stack, &Expected { committed, recoveries: 10, ..Expected::default() }).await
}
