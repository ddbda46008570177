//! What a sandbox is started with.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::faults::FaultFile;

/// Settings of one sandbox process. `Config::default()` is a well-behaved provider on a free port.
#[derive(Debug, Clone)]
pub struct Config {
    /// Address to listen on; port 0 picks a free one.
    pub listen: SocketAddr,
    /// Append-only NDJSON file. State is rebuilt from it at start. `None` keeps lines in memory only.
    pub journal: Option<PathBuf>,
    /// How long an object stays in each step before it moves on.
    pub settle: Settle,
    /// How long a new object stays invisible to retrieve and list. Zero: read after write.
    pub lookup_lag: Duration,
    /// How far search is behind list and retrieve. Stripe: below a minute, up to an hour in outages
    /// (<https://docs.stripe.com/search#data-freshness>).
    pub search_lag: Duration,
    /// Age after which an idempotency key is forgotten. Stripe: 24 h
    /// (<https://docs.stripe.com/api/idempotent_requests>).
    pub key_window: Duration,
    /// Opening balance in minor units per currency; `None` is unlimited.
    pub funds: Option<i64>,
    /// Secret keys that are accepted: Stripe's, and Twilio's as `SK…:secret`. Without one of a provider, every key of
    /// that provider's shape is accepted.
    pub api_keys: Vec<String>,
    /// Accounts that do not behave. Every other `acct_…` exists and works.
    pub accounts: BTreeMap<String, AccountState>,
    /// Rules and limiter active from the first call.
    pub faults: FaultFile,
    /// Seed of every probability.
    pub seed: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            journal: None,
            settle: Settle::After(Duration::from_millis(200)),
            lookup_lag: Duration::ZERO,
            search_lag: Duration::from_secs(1),
            key_window: Duration::from_secs(24 * 3600),
            funds: None,
            api_keys: Vec::new(),
            accounts: BTreeMap::new(),
            faults: FaultFile::default(),
            seed: 0,
        }
    }
}

/// What moves an object to its next step: a transfer's balance transaction needs one step to become
/// `available`, a payout two to become `paid`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settle {
    /// Real (or shifted) time per step.
    After(Duration),
    /// Successful retrievals of the object per step, for tests that must not depend on time. The
    /// retrieval that completes a step still shows the step before.
    Polls(u32),
}

/// How a configured account deviates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccountState {
    /// Works; removes an earlier deviation.
    Active,
    /// Does not exist: `resource_missing` as a destination, `account_invalid` as `Stripe-Account`.
    Missing,
    /// Cannot receive transfers: `insufficient_capabilities_for_transfer`.
    Blocked,
    /// Cannot pay out: `payouts_not_allowed`.
    PayoutsDisabled,
}
