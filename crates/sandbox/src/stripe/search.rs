//! `GET /v1/payment_intents/search`: unlike list calls, never read after write
//! (<https://docs.stripe.com/search#data-freshness>).

use serde_json::{Value, json};

use super::error::ApiError;
use super::form::Params;
use super::objects::PaymentIntent;
use super::world::World;

/// One `field:'value'` clause.
#[derive(Debug, PartialEq, Eq)]
enum Clause<'q> {
    Metadata(&'q str, &'q str),
    Status(&'q str),
    Customer(&'q str),
}

/// Newest matches first. Only `AND` of exact clauses is modeled.
pub(crate) fn search(
    world: &World,
    params: &Params,
    account: Option<&str>,
    now_ms: i64,
    lag_ms: i64,
) -> Result<Value, ApiError> {
    let query = params.get("query").unwrap_or_default();
    let clauses: Option<Vec<Clause<'_>>> = query.split(" AND ").map(clause).collect();
    let clauses = clauses.ok_or_else(|| {
        ApiError::invalid(None, "query", format!("We were unable to parse your search query: {query}"))
    })?;
    let limit = params.get("limit").and_then(|limit| limit.parse().ok()).unwrap_or(10);
    let indexed = |row: &&PaymentIntent| {
        row.base.account.as_deref() == account
            && row.base.visible_ms.saturating_add(lag_ms) <= now_ms
            && clauses.iter().all(|clause| clause.holds(row))
    };
    let mut found: Vec<&PaymentIntent> = world.intents.rows().rev().filter(indexed).take(limit + 1).collect();
    let has_more = found.len() > limit;
    found.truncate(limit);
    let data: Vec<Value> = found.into_iter().map(PaymentIntent::render).collect();
    Ok(json!({
        "object": "search_result",
        "data": data,
        "has_more": has_more,
        "next_page": null,
        "url": "/v1/payment_intents/search",
    }))
}

impl Clause<'_> {
    fn holds(&self, row: &PaymentIntent) -> bool {
        match self {
            Self::Metadata(key, value) => row.base.metadata.get(*key).is_some_and(|known| known == value),
            Self::Status(status) => row.status == *status,
            Self::Customer(customer) => row.customer.as_deref() == Some(customer),
        }
    }
}

fn clause(text: &str) -> Option<Clause<'_>> {
    let (field, value) = text.trim().split_once(':')?;
    let value = quoted(value)?;
    match field {
        "status" => Some(Clause::Status(value)),
        "customer" => Some(Clause::Customer(value)),
        _ => {
            let key = field.strip_prefix("metadata[")?.strip_suffix(']')?;
            Some(Clause::Metadata(quoted(key)?, value))
        }
    }
}

fn quoted(text: &str) -> Option<&str> {
    ['\'', '"'].iter().find_map(|mark| text.strip_prefix(*mark)?.strip_suffix(*mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_exact_clauses_only() {
        assert_eq!(clause("metadata['operation_id']:'op_1'"), Some(Clause::Metadata("operation_id", "op_1")));
        assert_eq!(clause("status:\"succeeded\""), Some(Clause::Status("succeeded")));
        assert_eq!(clause("amount>100"), None);
        assert_eq!(clause("metadata['a']:b"), None);
    }
}
