//! What all connections share.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::clock::real_now_text;
use crate::config::Config;
use crate::control::Action;
use crate::faults::Faults;
use crate::journal::{Journal, JournalError, Line};
use crate::ledger::{Entry, Ledger};
use crate::stripe::Stripe;
use crate::twilio::Twilio;

/// One sandbox.
#[derive(Debug)]
pub(crate) struct App {
    inner: Mutex<Inner>,
    /// Cancelled when the sandbox stops.
    pub(crate) stop: CancellationToken,
}

/// Everything behind the lock. No method waits.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) journal: Journal,
    pub(crate) faults: Faults,
    pub(crate) ledger: Ledger,
    pub(crate) stripe: Stripe,
    pub(crate) twilio: Twilio,
    /// Calls waiting by a fault, and the most there ever were.
    pub(crate) held: u64,
    pub(crate) peak_held: u64,
}

/// Why a sandbox could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// See the journal's error.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A line describes a change that this build does not know.
    #[error("journal line with seq {seq} cannot be restored")]
    Restore {
        /// Number of the call.
        seq: u64,
        /// Cause.
        source: serde_json::Error,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// The configured address.
        address: std::net::SocketAddr,
        /// Cause.
        source: std::io::Error,
    },
}

impl App {
    /// Builds the state, from the journal if there is one.
    pub(crate) fn open(config: &Config) -> Result<Self, StartError> {
        let mut stripe = Stripe::new(config);
        let mut twilio = Twilio::new(config);
        let mut ledger = Ledger::default();
        let mut failed = None;
        let journal = match &config.journal {
            None => Journal::in_memory(),
            Some(path) => Journal::open(path, |line| {
                ledger.note(&line);
                let restored = match line.provider.as_deref() {
                    Some(crate::twilio::PROVIDER) => twilio.restore(&line),
                    Some(_) => stripe.restore(&line),
                    // A control action may concern both.
                    None => stripe.restore(&line).and_then(|()| twilio.restore(&line)),
                };
                if let (Err(source), None) = (restored, &failed) {
                    failed = Some(StartError::Restore { seq: line.seq, source });
                }
            })?,
        };
        if let Some(failed) = failed {
            return Err(failed);
        }
        let faults = Faults::new(config.seed, config.faults.clone());
        let inner = Mutex::new(Inner { journal, faults, ledger, stripe, twilio, held: 0, peak_held: 0 });
        Ok(Self { inner, stop: CancellationToken::new() })
    }

    /// The state. A thread that panicked while holding it leaves it usable: lines are written whole.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Writes a line; false if it could not be written, and then nobody may be told of its effect.
    pub(crate) fn record(&mut self, line: &Line) -> bool {
        self.ledger.note(line);
        match self.journal.append(line) {
            Ok(()) => true,
            Err(error) => {
                tracing::error!(seq = line.seq, %error, "journal line not written");
                false
            }
        }
    }

    /// Body of `GET /ledger`: sums, and one operation or all of them.
    pub(crate) fn ledger_report(&self, only: Option<&str>) -> Value {
        let mut report = self.ledger_summary();
        let settled = crate::stripe::settled(&self.stripe.world);
        let wanted = self.ledger.operations.iter().filter(|(id, _)| only.is_none_or(|only| only == *id));
        let operations: BTreeMap<&str, Entry> = wanted
            .map(|(id, entry)| {
                let settled = settled.get(id.as_str()).copied().unwrap_or(0);
                (id.as_str(), Entry { settled, ..entry.clone() })
            })
            .collect();
        report["operations"] = json!(operations);
        report
    }

    /// The sums alone: cheap enough to ask for during a run of millions.
    pub(crate) fn ledger_summary(&self) -> Value {
        let duplicated = self.ledger.operations.values().filter(|entry| entry.applied > 1).count();
        json!({
            "posts": self.ledger.posts,
            "gets": self.ledger.gets,
            "held": self.held,
            "peak_held": self.peak_held,
            "totals": self.ledger.totals,
            "applied_without_operation": self.ledger.without_operation,
            "operations_total": self.ledger.operations.len(),
            "operations_duplicated": duplicated,
            "operations_settled": crate::stripe::settled(&self.stripe.world).len(),
        })
    }

    /// Records and carries out a control action.
    pub(crate) fn control(&mut self, mut action: Action) -> Value {
        if let Action::Become { at_ms, .. }
        | Action::Conversation { at_ms, .. }
        | Action::Participant { at_ms, .. } = &mut action
        {
            at_ms.get_or_insert(self.stripe.world.clock.now_ms());
        }
        let line = Line {
            seq: self.journal.next_seq(),
            at: real_now_text(),
            method: "CONTROL".to_owned(),
            path: "/control".to_owned(),
            change: serde_json::to_value(&action).ok(),
            ..Line::default()
        };
        let written = self.record(&line);
        let touched = self.stripe.act(&action) + self.twilio.act(&action);
        json!({"touched": touched, "recorded": written, "clock_shift_ms": self.stripe.world.clock.shift_ms()})
    }
}
