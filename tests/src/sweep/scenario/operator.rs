//! What producers and operators ask for twice.

use super::doubt::until;
use super::{Env, open};
use crate::check::{self, Expected};
use crate::sweep::must_hold;
use crate::{TWO_PEOPLE, eventually, must_backline};
use serde_json::json;

/// A producer asks again for what has long been done.
///
/// # Errors
/// A promise is broken.
pub async fn asked_twice(env: Env<'_>) -> anyhow::Result<()> {
    let mut bench = open(env).await?;
    bench.transfer("once", 700, "acct_payee").await?;
    bench.settled().await?;
    let instruction = json!({"amount": {"minor": 700, "currency": "eur"}, "destination": "acct_payee"});
    let input = json!({"payment_id": "once", "authorization": "a", "instruction": instruction});
    let organization = bench.organization();
    bench.parts().enqueue("stripe.transfer", organization, "once", input).await?;
    bench.settled().await?;
    must_hold(&bench).await
}

/// An operation that no attempt can read is replayed by two people. Whatever comes of it, it is the same operation.
///
/// # Errors
/// A promise is broken.
pub async fn replayed(env: Env<'_>) -> anyhow::Result<()> {
    let mut bench = open(env).await?;
    let input = json!({"payment_id": "broken", "authorization": "a", "instruction": "not an instruction"});
    let organization = bench.organization();
    let operation = bench.parts().enqueue("stripe.transfer", organization, "broken", input).await?;
    let dead = "exists (select from backline.operation where id = $1 and state = 'dead' and attempt = 1)";
    until(&bench, operation, dead).await?;
    // Told apart from the end of the replay, which counts from zero.
    sqlx::query("update backline.operation set attempt = 7 where id = $1")
        .bind(operation)
        .execute(bench.pool())
        .await?;
    let port = bench.stack().server().port();
    let id = operation.to_string();
    let retry = [&["ops", "retry", &id][..], &TWO_PEOPLE].concat();
    must_backline(&bench.database_url_at(port), env, &retry)?;
    let again = "select exists (select from backline.operation where operation_key = 'broken' and state = 'dead' and attempt = 1)";
    eventually("the replay to end", async || Ok(sqlx::query_scalar(again).fetch_one(bench.pool()).await?))
        .await?;
    let expected = Expected { stuck: 1, committed: vec![operation], ..Expected::default() };
    check::invariants(bench.parts(), &expected).await?;
    until(&bench, operation, "exists (select from backline.operation where id = $1)").await
}
