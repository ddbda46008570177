//! Things a test does to the provider from outside, other than faults.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config::AccountState;

/// What a conversation can be made from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConversationState {
    /// In use.
    Active,
    /// Set aside: what applications call archived.
    Inactive,
    /// For good.
    Closed,
    /// Gone with everything in it.
    Deleted,
}

/// Body of `POST /control`. Recorded in the journal, so a restarted sandbox remembers it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case", deny_unknown_fields)]
pub enum Action {
    /// Moves the provider's clock: keys age, objects settle.
    ClockForward {
        /// How far.
        #[serde(with = "crate::duration")]
        by: Duration,
    },
    /// Moves the provider's clock back.
    ClockBack {
        /// How far.
        #[serde(with = "crate::duration")]
        by: Duration,
    },
    /// Forgets every finished idempotency key.
    PruneKeys,
    /// Makes an account deviate, or work again.
    Account {
        /// `acct_…`.
        id: String,
        /// New state.
        state: AccountState,
    },
    /// Adds minor units to a balance (negative takes away).
    Funds {
        /// Connected account; the platform if absent.
        #[serde(default)]
        account: Option<String>,
        /// Lower-case ISO code.
        currency: String,
        /// Minor units.
        amount: i64,
    },
    /// Changes or deletes a Twilio conversation as a person at the console would.
    Conversation {
        /// SID or unique name.
        id: String,
        /// New state, even of a closed one.
        becomes: ConversationState,
        /// Provider clock, milliseconds since 1970; filled in when recorded.
        #[serde(default)]
        at_ms: Option<i64>,
    },
    /// Adds or removes a chat participant as a person at the console would.
    Participant {
        /// SID or unique name.
        conversation: String,
        /// Chat identity.
        identity: String,
        /// Whether they are to be a member.
        present: bool,
        /// Provider clock, milliseconds since 1970; filled in when recorded.
        #[serde(default)]
        at_ms: Option<i64>,
    },
    /// Changes the status of a payout or refund from now on: the later contradiction.
    Become {
        /// `po_…` or `re_…`.
        id: String,
        /// `failed`, `canceled`, …
        status: String,
        /// Failure code or reason.
        #[serde(default)]
        code: Option<String>,
        /// Provider clock, milliseconds since 1970; filled in when recorded.
        #[serde(default)]
        at_ms: Option<i64>,
    },
}
