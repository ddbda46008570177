//! Balance transactions (computed from their source, never stored) and balances.

use serde_json::{Value, json};

use super::{PaymentIntent, Payout, Refund, Reversal, Transfer};
use crate::stripe::table::{Base, Record, make_id, parse_id};
use crate::stripe::world::World;

/// `txn_` id of a source object: its number, and two letters for its kind.
pub(crate) fn balance_transaction_id<T: Record>(source: &T) -> String {
    make_id("txn", source.base().n) + suffix(T::PREFIX)
}

fn suffix(prefix: &str) -> &'static str {
    match prefix {
        "tr" => "tr",
        "trr" => "rv",
        "po" => "po",
        "re" => "re",
        _ => "ch",
    }
}

/// What a balance transaction needs of its source.
struct Source<'a> {
    base: &'a Base,
    id: String,
    amount: i64,
    currency: &'a str,
    kind: &'static str,
}

/// The transaction, or nothing if its source does not exist, is not visible yet or belongs to another account.
pub(crate) fn balance_transaction(
    world: &World,
    id: &str,
    account: Option<&str>,
    now_ms: i64,
) -> Option<Value> {
    let (number, kind) = id.split_at_checked(id.len().checked_sub(2)?)?;
    let source = source(world, kind, parse_id("txn", number)?)?;
    if source.base.account.as_deref() != account || source.base.visible_ms > now_ms {
        return None;
    }
    let steps = world.steps(id, source.base, now_ms);
    Some(json!({
        "id": id,
        "object": "balance_transaction",
        "amount": source.amount,
        "available_on": (source.base.created_ms + world.step_ms()) / 1_000,
        "balance_type": "payments",
        "created": source.base.created(),
        "currency": source.currency,
        "description": null,
        "exchange_rate": null,
        "fee": 0,
        "fee_details": [],
        "net": source.amount,
        "reporting_category": source.kind,
        "source": source.id,
        "status": if steps >= 1 { "available" } else { "pending" },
        "type": source.kind,
    }))
}

fn source<'a>(world: &'a World, kind: &str, n: u64) -> Option<Source<'a>> {
    fn of<'a, T: Record>(row: &'a T, amount: i64, currency: &'a str, kind: &'static str) -> Source<'a> {
        Source { base: row.base(), id: row.id(), amount, currency, kind }
    }
    match kind {
        "tr" => {
            world.transfers.number(n).map(|row: &Transfer| of(row, -row.amount, &row.currency, "transfer"))
        }
        "rv" => world
            .reversals
            .number(n)
            .map(|row: &Reversal| of(row, row.amount, &row.currency, "transfer_refund")),
        "po" => world.payouts.number(n).map(|row: &Payout| of(row, -row.amount, &row.currency, "payout")),
        "pf" => {
            world.payouts.number(n).map(|row: &Payout| of(row, row.amount, &row.currency, "payout_failure"))
        }
        "re" => world.refunds.number(n).map(|row: &Refund| of(row, -row.amount, &row.currency, "refund")),
        "rf" => {
            world.refunds.number(n).map(|row: &Refund| of(row, row.amount, &row.currency, "refund_failure"))
        }
        "ch" => {
            world.intents.number(n).map(|row: &PaymentIntent| of(row, row.received, &row.currency, "charge"))
        }
        _ => None,
    }
}

/// `GET /v1/balance`: movements of an account, all of them available.
pub(crate) fn show_balance(world: &World, account: Option<&str>) -> Value {
    let amounts = world.balances(account);
    let show = |sum: fn(i64) -> i64| -> Vec<Value> {
        let entry = |(currency, amount): &(String, i64)| json!({"amount": sum(*amount), "currency": currency, "source_types": {"card": sum(*amount)}});
        amounts.iter().map(entry).collect()
    };
    json!({"object": "balance", "available": show(|sum| sum), "livemode": false, "pending": show(|_| 0)})
}
