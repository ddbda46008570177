//! Which effects are final: an available transfer that was not wholly reversed, a `paid` payout, a
//! `succeeded` refund.

use std::collections::HashMap;

use super::objects::balance_transaction_id;
use super::table::{Base, Record};
use super::world::World;

/// Number of settled effects per operation id.
pub(crate) fn settled(world: &World) -> HashMap<&str, u64> {
    let now_ms = world.clock.now_ms();
    let transfers = world.transfers.rows().filter(|row| {
        row.reversed < row.amount && world.steps(&balance_transaction_id(*row), row.base(), now_ms) >= 1
    });
    let payouts = world.payouts.rows().filter(|row| row.status(world, now_ms) == "paid");
    let refunds = world.refunds.rows().filter(|row| row.status(now_ms) == "succeeded");
    let mut counts = HashMap::new();
    let bases = transfers.map(Record::base).chain(payouts.map(Record::base)).chain(refunds.map(Record::base));
    for operation in bases.filter_map(operation_id) {
        *counts.entry(operation).or_default() += 1;
    }
    counts
}

fn operation_id(base: &Base) -> Option<&str> {
    base.metadata.get("operation_id").map(String::as_str)
}
