//! Retrieve and list.

use std::ops::RangeInclusive;

use serde_json::{Value, json};

use super::endpoint::Endpoint;
use super::error::ApiError;
use super::form::Params;
use super::objects::{balance_transaction, self_account, show_account, show_balance};
use super::search::search;
use super::table::{Query, Record, Table};
use super::world::World;
use crate::config::AccountState;

/// Answers a GET as of `now_ms`.
pub(crate) fn read(
    endpoint: Endpoint<'_>,
    world: &World,
    params: &Params,
    account: Option<&str>,
    now_ms: i64,
) -> Result<Value, ApiError> {
    let query = |filters: &[(&'static str, Option<&str>)]| Query {
        account,
        filters: filters
            .iter()
            .filter_map(|(name, fixed)| Some((*name, fixed.or_else(|| params.get(name))?.to_owned())))
            .collect(),
        created: created(params),
        limit: params.get("limit").and_then(|limit| limit.parse().ok()).unwrap_or(10),
        starting_after: params.get("starting_after"),
        ending_before: params.get("ending_before"),
        now_ms,
    };
    match endpoint {
        Endpoint::Transfer(id) => one(&world.transfers, id, account, now_ms).map(|row| row.render(world)),
        Endpoint::Transfers => {
            let query = query(&[("destination", None), ("transfer_group", None)]);
            page(&world.transfers, &query, "/v1/transfers", |row| row.render(world))
        }
        Endpoint::Reversal { transfer, id } => {
            let row = one(&world.reversals, id, account, now_ms)?;
            let own = row.keys().iter().any(|(_, of)| of == transfer);
            if own { Ok(row.render()) } else { Err(ApiError::missing(404, "transfer_reversal", id, "id")) }
        }
        Endpoint::Reversals { transfer } => {
            one(&world.transfers, transfer, account, now_ms)?;
            let url = format!("/v1/transfers/{transfer}/reversals");
            page(&world.reversals, &query(&[("transfer", Some(transfer))]), &url, |row| row.render())
        }
        Endpoint::Payout(id) => one(&world.payouts, id, account, now_ms).map(|row| row.render(world, now_ms)),
        Endpoint::Payouts => {
            let mut list = page(&world.payouts, &query(&[("destination", None)]), "/v1/payouts", |row| {
                row.render(world, now_ms)
            })?;
            // Status is a function of time and not indexed: the page may be shorter than the limit.
            if let (Some(status), Some(data)) =
                (params.get("status"), list.get_mut("data").and_then(Value::as_array_mut))
            {
                data.retain(|payout| payout.get("status").and_then(Value::as_str) == Some(status));
            }
            Ok(list)
        }
        Endpoint::Intent(id) => {
            one(&world.intents, id, account, now_ms).map(|row| row.render()).map_err(|mut error| {
                // Stripe names this path's parameter, as its confirm and capture do.
                error.param = Some("intent".to_owned());
                error
            })
        }
        Endpoint::Intents => {
            page(&world.intents, &query(&[("customer", None)]), "/v1/payment_intents", |row| row.render())
        }
        Endpoint::SearchIntents => search(world, params, account, now_ms, world.search_lag_ms),
        Endpoint::Refund(id) => one(&world.refunds, id, account, now_ms).map(|row| row.render(now_ms)),
        Endpoint::Refunds => {
            let query = query(&[("payment_intent", None), ("charge", None)]);
            page(&world.refunds, &query, "/v1/refunds", |row| row.render(now_ms))
        }
        Endpoint::BalanceTransaction(id) => balance_transaction(world, id, account, now_ms)
            .ok_or_else(|| ApiError::missing(404, "balance transaction", id, "id")),
        Endpoint::Balance => Ok(show_balance(world, account)),
        Endpoint::Account(id) => {
            let id = id.or(account).unwrap_or(self_account());
            match world.account_state(id) {
                AccountState::Missing => Err(account_invalid(id)),
                _ if !id.starts_with("acct_") => Err(account_invalid(id)),
                state => Ok(show_account(id, state)),
            }
        }
        _ => Err(ApiError::invalid(None, "", "This endpoint takes POST.")),
    }
}

/// 403 of an account that does not exist or is out of reach.
pub(crate) fn account_invalid(id: &str) -> ApiError {
    let message =
        format!("The provided key does not have access to account '{id}' (or that account does not exist).");
    ApiError::new(403, "invalid_request_error", Some("account_invalid"), message)
}

fn one<'w, T: Record>(
    table: &'w Table<T>,
    id: &str,
    account: Option<&str>,
    now_ms: i64,
) -> Result<&'w T, ApiError> {
    let visible = table.find(id, account).filter(|row| row.base().visible_ms <= now_ms);
    visible.ok_or_else(|| ApiError::missing(404, T::OBJECT, id, "id"))
}

fn page<T: Record>(
    table: &Table<T>,
    query: &Query<'_>,
    url: &str,
    render: impl Fn(&T) -> Value,
) -> Result<Value, ApiError> {
    let (rows, has_more) = table.page(query).map_err(|cursor| {
        let param = if query.starting_after == Some(cursor) { "starting_after" } else { "ending_before" };
        ApiError::missing(400, T::OBJECT, cursor, param)
    })?;
    let data: Vec<Value> = rows.into_iter().map(render).collect();
    Ok(json!({"object": "list", "data": data, "has_more": has_more, "url": url}))
}

/// `created`, bare or with bounds, in whole seconds.
fn created(params: &Params) -> RangeInclusive<i64> {
    if let Some(exact) = params.int("created") {
        return exact..=exact;
    }
    let after = params.int("created[gt]").map(|bound| bound.saturating_add(1));
    let before = params.int("created[lt]").map(|bound| bound.saturating_sub(1));
    let start = after.into_iter().chain(params.int("created[gte]")).max().unwrap_or(i64::MIN);
    let end = before.into_iter().chain(params.int("created[lte]")).min().unwrap_or(i64::MAX);
    start..=end
}
