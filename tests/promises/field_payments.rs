//! Field cases of payments: credentials, keys in use, and keys that the provider has forgotten.

use backline_promises::check::{self, Expected};
use backline_promises::{Action, CrashPlan, PAYMENTS, SANDBOX, Site, Stack, eventually, http};
use serde_json::{Value, json};
use uuid::Uuid;

async fn pay(stack: &Stack) -> anyhow::Result<Uuid> {
    let organization = Uuid::now_v7();
    let instruction =
        json!({"type": "transfer", "amount": {"minor": 1250, "currency": "eur"}, "destination": "acct_x"});
    let payload = json!({"payment_id": "p", "authorization": "a", "instruction": instruction});
    stack.emit("PaymentAuthorized", organization, "p", payload).await?;
    let sql = "select backline.operation_id($1, 'stripe.transfer', 'p')";
    Ok(sqlx::query_scalar(sql).bind(organization).fetch_one(stack.pool()).await?)
}

fn submissions(stack: &Stack) -> anyhow::Result<Vec<Value>> {
    Ok(stack
        .journal()?
        .into_iter()
        .filter(|line| line["method"] == "POST" && line["path"] == "/v1/transfers")
        .collect())
}

/// Case 65: <https://github.com/tempoxyz/pympp/pull/155>
#[tokio::test]
async fn a_rotated_credential_is_no_new_charge() -> anyhow::Result<()> {
    let plan = Stack::builder().later("before", PAYMENTS).later("after", PAYMENTS);
    let mut stack = plan.env("after", "STRIPE_API_KEY", "sk_test_rotated").start().await?;
    let site = Site { name: "stripe.request.after".to_owned(), nth: 1 };
    let plan = CrashPlan::new(site, Action::Kill, stack.dir());
    stack.member("before")?.launch_with(&plan)?;
    eventually("the subscription", async || {
        Ok(stack.count("select count(*) from backline.required_consumer where consumer = 'payments'").await?
            > 0)
    })
    .await?;
    let id = pay(&stack).await?;
    eventually("the crash", async || Ok(stack.member("before")?.ended()?.is_some())).await?;
    assert!(plan.fired());
    stack.member("after")?.start()?;
    stack.comes_to(id, "succeeded").await?;
    let calls = submissions(&stack)?;
    assert_eq!(calls.len(), 2);
    assert_eq!(calls[0]["key"], calls[1]["key"], "the key knows nothing of credentials");
    assert_eq!((&calls[0]["applied"], &calls[1]["replayed"]), (&json!(true), &json!(true)));
    check::settled(&stack, &Expected::recovered()).await
}

/// Case 67: <https://github.com/beam-community/stripity-stripe/issues/564>
#[tokio::test]
async fn a_key_in_use_is_waited_for() -> anyhow::Result<()> {
    let mut stack = Stack::builder().worker(PAYMENTS).start().await?;
    let rule = json!({"match": {"method": "POST", "path": "/v1/transfers"}, "when": {"first": 2}, "fault": {"kind": "in_use"}});
    stack.add_faults(SANDBOX, &json!({"rules": [rule]}))?;
    let id = pay(&stack).await?;
    stack.comes_to(id, "succeeded").await?;
    let calls = submissions(&stack)?;
    assert_eq!(calls.len(), 3);
    assert!(calls.iter().all(|call| call["key"] == calls[0]["key"]));
    let other =
        "select count(*) from backline.attempt_evidence where operation_id = $1 and class <> 'transient'";
    assert_eq!(stack.number(other, id).await?, 0, "neither refused nor unknown");
    check::settled(&stack, &Expected { recoveries: 2, ..Expected::default() }).await
}

/// Case 69, with a provider that has really forgotten the key: <https://github.com/dimagi/commcare-hq/pull/33509>
#[tokio::test]
async fn a_forgotten_key_is_never_presented_again_without_a_lookup() -> anyhow::Result<()> {
    let mut stack = Stack::builder().worker(PAYMENTS).start().await?;
    let rule = json!({"match": {"method": "POST", "path": "/v1/transfers"}, "when": {"first": 1}, "fault": {"kind": "slow", "delay": "800ms"}});
    stack.add_faults(SANDBOX, &json!({"rules": [rule]}))?;
    let id = pay(&stack).await?;
    let running = "select count(*) from backline.operation where id = $1 and state = 'running'";
    eventually("the request", async || Ok(stack.number(running, id).await? == 1)).await?;
    eventually("the effect", async || {
        Ok(submissions(&stack)?.iter().any(|call| call["replied"] == "held" || call["applied"] == true))
    })
    .await?;
    stack.member(PAYMENTS)?.kill9()?;
    eventually("the effect", async || Ok(submissions(&stack)?.iter().any(|call| call["applied"] == true)))
        .await?;
    http::must(stack.member(SANDBOX)?.address()?, "POST", "/control", &json!({"action": "prune_keys"}))?;
    sqlx::query("update backline.operation set first_submitted_at = first_submitted_at - interval '25 h' where id = $1")
        .bind(id)
        .execute(stack.pool())
        .await?;
    stack.member(PAYMENTS)?.start()?;
    stack.comes_to(id, "succeeded").await?;
    assert_eq!(submissions(&stack)?.iter().filter(|call| call["applied"] == true).count(), 1);
    check::settled(&stack, &Expected::recovered()).await
}

/// An expired credential parks the account, burns nothing, and everything goes on with a new one.
#[tokio::test]
async fn refused_credentials_park_the_account_and_burn_no_attempt() -> anyhow::Result<()> {
    let plan = Stack::builder().worker_as("expired", PAYMENTS).later("renewed", PAYMENTS);
    let mut stack = plan.env("renewed", "STRIPE_API_KEY", "sk_test_renewed").start().await?;
    let rule =
        json!({"match": {"api_key": "sk_test_canary_of_the_promises"}, "fault": {"kind": "unauthorized"}});
    stack.add_faults(SANDBOX, &json!({"rules": [rule]}))?;
    let id = pay(&stack).await?;
    eventually("the pause", async || {
        Ok(stack.count("select count(*) from backline.pause where scope = 'provider_account' and paused_by = 'breaker'").await? == 1)
    })
    .await?;
    eventually("the claim to be given back", async || Ok(stack.state(id).await? == "ready")).await?;
    assert_eq!(stack.number("select attempt::bigint from backline.operation where id = $1", id).await?, 0);
    stack.member("expired")?.kill9()?;
    sqlx::query("update backline.operation set due_at = clock_timestamp() where id = $1")
        .bind(id)
        .execute(stack.pool())
        .await?;
    sqlx::query("update backline.ready_lane set next_due = clock_timestamp(), mark_due = '2000-01-01'")
        .execute(stack.pool())
        .await?;
    stack.member("renewed")?.start()?;
    stack.comes_to(id, "succeeded").await?;
    check::settled(&stack, &Expected::recovered()).await
}
