//! Everything the stand-in remembers. Changes only through `apply`, so that replaying the journal's
//! changes in order gives the same state.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::objects::{PaymentIntent, Payout, Refund, Reversal, Transfer};
use super::table::{Base, Record, Table, parse_id};
use crate::clock::Clock;
use crate::config::{AccountState, Config, Settle};
use crate::faults::Becomes;

/// One durable change: the object as it is right after the call.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "object", content = "is", rename_all = "snake_case")]
pub(crate) enum Change {
    Transfer(Transfer),
    Reversal(Reversal),
    Payout(Payout),
    Refund(Refund),
    /// Also confirmations and cancellations of an earlier intent.
    PaymentIntent(PaymentIntent),
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) clock: Clock,
    pub(crate) transfers: Table<Transfer>,
    pub(crate) reversals: Table<Reversal>,
    pub(crate) payouts: Table<Payout>,
    pub(crate) refunds: Table<Refund>,
    pub(crate) intents: Table<PaymentIntent>,
    pub(crate) accounts: BTreeMap<String, AccountState>,
    /// How far search is behind.
    pub(crate) search_lag_ms: i64,
    settle: Settle,
    /// Retrievals per object id, when settlement goes by polls.
    polls: HashMap<String, u32>,
    opening: Option<i64>,
    /// Movements per (account, currency) in minor units.
    moved: BTreeMap<(Option<String>, String), i64>,
    next_number: u64,
}

impl World {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            clock: Clock::default(),
            transfers: Table::default(),
            reversals: Table::default(),
            payouts: Table::default(),
            refunds: Table::default(),
            intents: Table::default(),
            accounts: config.accounts.clone(),
            search_lag_ms: crate::duration::millis(config.search_lag),
            settle: config.settle,
            polls: HashMap::new(),
            opening: config.funds,
            moved: BTreeMap::new(),
            next_number: 1,
        }
    }

    /// The number that the next new object will get. It is taken by `apply`.
    pub(crate) fn next_number(&self) -> u64 {
        self.next_number
    }

    pub(crate) fn account_state(&self, id: &str) -> AccountState {
        self.accounts.get(id).copied().unwrap_or(AccountState::Active)
    }

    /// Steps that an object has made since it was created (see [`Settle`]).
    pub(crate) fn steps(&self, id: &str, base: &Base, now_ms: i64) -> i64 {
        match self.settle {
            Settle::After(step) => {
                let age = (now_ms - base.created_ms).max(0);
                age.checked_div(crate::duration::millis(step)).unwrap_or(i64::MAX)
            }
            Settle::Polls(per_step) => {
                let polls = self.polls.get(id).copied().unwrap_or(0);
                i64::from(polls.checked_div(per_step).unwrap_or(u32::MAX))
            }
        }
    }

    /// Milliseconds per step, for announced dates.
    pub(crate) fn step_ms(&self) -> i64 {
        match self.settle {
            Settle::After(step) => crate::duration::millis(step),
            Settle::Polls(_) => 0,
        }
    }

    /// Counts a retrieval of `id`.
    pub(crate) fn polled(&mut self, id: &str) {
        if let Settle::Polls(_) = self.settle {
            *self.polls.entry(id.to_owned()).or_default() += 1;
        }
    }

    /// Minor units that an account may spend; `None` is unlimited.
    pub(crate) fn spendable(&self, account: Option<&str>, currency: &str) -> Option<i64> {
        let opening = self.opening?;
        let moved = self.moved.get(&(account.map(str::to_owned), currency.to_owned())).copied();
        Some(if account.is_none() { opening } else { 0 } + moved.unwrap_or(0))
    }

    /// Currencies of an account with the sum of their movements and the opening balance.
    pub(crate) fn balances(&self, account: Option<&str>) -> Vec<(String, i64)> {
        let opening = if account.is_none() { self.opening.unwrap_or(0) } else { 0 };
        let own = self.moved.iter().filter(|((owner, _), _)| owner.as_deref() == account);
        own.map(|((_, currency), moved)| (currency.clone(), opening + moved)).collect()
    }

    /// Adds to (or takes from) an account's balance.
    pub(crate) fn move_funds(&mut self, account: Option<&str>, currency: &str, amount: i64) {
        *self.moved.entry((account.map(str::to_owned), currency.to_owned())).or_default() += amount;
    }

    /// Gives a payout or refund its later status; false if there is no such object.
    pub(crate) fn contradict(&mut self, id: &str, later: Becomes) -> bool {
        let payout = parse_id(Payout::PREFIX, id).and_then(|n| self.payouts.number_mut(n));
        let refund = parse_id(Refund::PREFIX, id).and_then(|n| self.refunds.number_mut(n));
        match payout.map(|row| &mut row.base).or(refund.map(|row| &mut row.base)) {
            Some(base) => base.becomes = Some(later),
            None => return false,
        }
        true
    }

    /// Makes a change true.
    pub(crate) fn apply(&mut self, change: Change) {
        self.next_number = self.next_number.max(change.base().n + 1);
        match change {
            Change::Transfer(transfer) => {
                self.move_funds(transfer.base.account.as_deref(), &transfer.currency, -transfer.amount);
                self.move_funds(Some(&transfer.destination), &transfer.currency, transfer.amount);
                self.transfers.put(transfer);
            }
            Change::Reversal(reversal) => {
                if let Some(transfer) = self.transfers.number_mut(reversal.transfer) {
                    transfer.reversed += reversal.amount;
                    let destination = transfer.destination.clone();
                    self.move_funds(Some(&destination), &reversal.currency, -reversal.amount);
                }
                self.move_funds(reversal.base.account.as_deref(), &reversal.currency, reversal.amount);
                self.reversals.put(reversal);
            }
            Change::Payout(payout) => {
                self.move_funds(payout.base.account.as_deref(), &payout.currency, -payout.amount);
                self.payouts.put(payout);
            }
            Change::Refund(refund) => {
                if let Some(intent) = self.intents.number_mut(refund.intent) {
                    intent.refunded += refund.amount;
                }
                self.move_funds(refund.base.account.as_deref(), &refund.currency, -refund.amount);
                self.refunds.put(refund);
            }
            Change::PaymentIntent(intent) => {
                let before = self.intents.number(intent.base.n).map_or(0, |known| known.received);
                let gained = intent.received - before;
                self.move_funds(intent.base.account.as_deref(), &intent.currency, gained);
                self.intents.put(intent);
            }
        }
    }

    /// The changed object as the API shows it.
    pub(crate) fn render(&self, change: &Change, now_ms: i64) -> Value {
        match change {
            Change::Transfer(row) => row.render(self),
            Change::Reversal(row) => row.render(),
            Change::Payout(row) => row.render(self, now_ms),
            Change::Refund(row) => row.render(now_ms),
            Change::PaymentIntent(row) => row.render(),
        }
    }
}

impl Change {
    pub(crate) fn base(&self) -> &Base {
        match self {
            Self::Transfer(row) => &row.base,
            Self::Reversal(row) => &row.base,
            Self::Payout(row) => &row.base,
            Self::Refund(row) => &row.base,
            Self::PaymentIntent(row) => &row.base,
        }
    }

    pub(crate) fn id(&self) -> String {
        match self {
            Self::Transfer(row) => row.id(),
            Self::Reversal(row) => row.id(),
            Self::Payout(row) => row.id(),
            Self::Refund(row) => row.id(),
            Self::PaymentIntent(row) => row.id(),
        }
    }

    /// Minor units and currency.
    pub(crate) fn money(&self) -> (i64, &str) {
        match self {
            Self::Transfer(row) => (row.amount, &row.currency),
            Self::Reversal(row) => (row.amount, &row.currency),
            Self::Payout(row) => (row.amount, &row.currency),
            Self::Refund(row) => (row.amount, &row.currency),
            Self::PaymentIntent(row) => (row.amount, &row.currency),
        }
    }
}
