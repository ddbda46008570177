//! Accounts: every `acct_…` exists unless configured otherwise.

use serde_json::{Value, json};

use crate::config::AccountState;

/// The platform's own id.
pub(crate) fn self_account() -> &'static str {
    "acct_1BSandboxPlatform"
}

/// A connected account as the API shows it.
pub(crate) fn show_account(id: &str, state: AccountState) -> Value {
    let capability = if state == AccountState::Blocked { "inactive" } else { "active" };
    json!({
        "id": id,
        "object": "account",
        "business_type": "company",
        "capabilities": {"transfers": capability, "card_payments": capability},
        "charges_enabled": state != AccountState::Blocked,
        "country": "US",
        "created": 1_700_000_000,
        "default_currency": "usd",
        "details_submitted": true,
        "email": null,
        "metadata": {},
        "payouts_enabled": state == AccountState::Active,
        "type": "custom",
    })
}
