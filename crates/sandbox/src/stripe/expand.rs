//! `expand[]`: ids in an answer replaced by their objects.

use serde_json::Value;

use super::error::ApiError;
use super::objects::{balance_transaction, show_account};
use super::world::World;

/// Paths below an object that can be expanded.
const EXPANDABLE: &[&str] = &["balance_transaction", "destination", "transfer", "payment_intent"];

/// Refuses paths that are not expandable; runs with validation.
pub(crate) fn check(paths: &[String]) -> Result<(), ApiError> {
    match paths.iter().find(|path| !EXPANDABLE.contains(&path.strip_prefix("data.").unwrap_or(path))) {
        None => Ok(()),
        Some(path) => {
            Err(ApiError::invalid(None, "expand", format!("This property cannot be expanded ({path}).")))
        }
    }
}

/// Expands in place; what is not an id, or not known, stays.
pub(crate) fn expand(
    world: &World,
    answer: &mut Value,
    paths: &[String],
    account: Option<&str>,
    now_ms: i64,
) {
    for path in paths {
        match path.strip_prefix("data.") {
            None => field(world, answer, path, account, now_ms),
            Some(name) => {
                let rows = answer.get_mut("data").and_then(Value::as_array_mut);
                rows.into_iter().flatten().for_each(|row| field(world, row, name, account, now_ms));
            }
        }
    }
}

fn field(world: &World, object: &mut Value, name: &str, account: Option<&str>, now_ms: i64) {
    let Some(Value::String(id)) = object.get(name) else { return };
    let full = match name {
        "balance_transaction" => balance_transaction(world, id, account, now_ms),
        "destination" if id.starts_with("acct_") => Some(show_account(id, world.account_state(id))),
        "transfer" => world.transfers.find(id, account).map(|row| row.render(world)),
        "payment_intent" => world.intents.find(id, account).map(|row| row.render()),
        _ => None,
    };
    if let (Some(full), Some(slot)) = (full, object.get_mut(name)) {
        *slot = full;
    }
}
