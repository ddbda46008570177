//! What producers and operators ask for twice.

use super::{Env, open};
use crate::sweep::must_hold;
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
