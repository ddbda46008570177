//! How attempts end: outcomes and departures, in batches or in a transaction of their own.

mod batch;
mod columns;
mod finisher;
mod follow;
mod own;
mod single;

pub(crate) use finisher::{Finisher, FinisherHandle, Handlers};
pub(crate) use follow::{Released, follow};

use crate::author::erased::Handler;
use crate::claim::Claim;
use crate::transition::State;
use backline_failure::{Failure, Mode};
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;

/// An attempt's end, on its way into the database.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) claim: Claim,
    pub(crate) how: How,
    /// Capacity held until the end is durable.
    pub(crate) permit: OwnedSemaphorePermit,
}

/// How it ended.
#[derive(Debug)]
pub(crate) enum How {
    /// The generation is over.
    Finish { outcome: State, code: Option<String>, detail: Option<String>, output: Option<String> },
    /// The operation stays open.
    Leave {
        state: State,
        delay: Duration,
        /// Spends an attempt, or for lookups a lookup.
        counted: bool,
        next_submission: bool,
        /// Repeating the same submission may still tell what happened.
        repeatable: bool,
        failure: Option<Failure>,
    },
}

impl How {
    /// Whether the handler writes rows of its own with this end.
    pub(crate) fn records(&self, handler: &dyn Handler) -> bool {
        handler.records()
            && match self {
                Self::Finish { outcome, .. } => {
                    matches!(outcome, State::Succeeded | State::Rejected | State::Obsolete)
                }
                Self::Leave { state, .. } => {
                    *state == State::Manual && handler.spec().mode == Mode::Reconcile
                }
            }
    }

    pub(crate) fn finish(outcome: State, code: Option<&str>, detail: Option<String>) -> Self {
        Self::Finish { outcome, code: code.map(str::to_owned), detail, output: None }
    }
}
