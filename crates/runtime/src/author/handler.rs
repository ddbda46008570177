//! The author's contract: a handler is a struct with its one client and these functions.

use crate::author::{Evidence, KindSpec, Operation, Owed, Record};
use backline_failure::{Call, Failure, Resolution};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::PgConnection;
use std::future::Future;
use std::time::Duration;

/// Answer of a guard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Guard {
    /// Go on.
    Proceed,
    /// No longer wanted: the rule's stable name, and the version of the state that was seen.
    Obsolete {
        /// Stable name of the rule.
        rule: &'static str,
        /// What was seen, for the audit.
        seen: String,
    },
}

/// Answer of a read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Read<T> {
    /// What the provider should look like.
    Desired(T),
    /// No longer wanted: the rule's stable name, and the version of the state that was seen.
    Obsolete {
        /// Stable name of the rule.
        rule: &'static str,
        /// What was seen, for the audit.
        seen: String,
    },
}

/// Answer of one convergence attempt.
#[derive(Debug, Clone, PartialEq)]
pub enum Step<T> {
    /// Converged.
    Done(T),
    /// Nothing failed, but the provider is not there yet: look again after this long, or when a newer request comes.
    /// Spends no attempt.
    Again(Duration),
    /// No request of ours can bring it about: a person has to decide, and is told why by code, detail and evidence. The
    /// operation is `manual` and keeps nobody else of its serial key waiting, because nothing of it is in doubt; an
    /// operator retries it or ends it with evidence, and a newer request tries again by itself.
    Person(Failure),
}

/// How the attempt ended the generation that is being recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conclusion<'a, T> {
    /// Applied, or converged.
    Succeeded(&'a T),
    /// Refused for good; nothing was applied.
    Rejected {
        /// Stable code.
        code: &'a str,
        /// Words without payload.
        detail: &'a str,
    },
    /// A rule found it no longer wanted; nothing was submitted.
    Obsolete {
        /// Stable name of the rule.
        rule: &'a str,
    },
}

/// One effect with frozen inputs (`command` and `event` modes).
pub trait Command: Send + Sync + 'static {
    /// Kind, for example `stripe.transfer`.
    const KIND: &'static str;
    /// Whether [`record`](Command::record) writes anything. Handlers that only need their outcome stored say `false`
    /// and are finished in batches.
    const RECORDS: bool = true;
    /// Whether [`guard`](Command::guard) asks anything; without one no transaction is spent on it.
    const GUARDS: bool = true;
    /// The serial key of its inputs: operations of one (organization, key) never overlap, whatever their kinds. Every
    /// request of the kind gets it when it is accepted, whatever its producer gave; `None` leaves each request its own.
    /// Producers of a [`Fifo`](crate::Serial::Fifo) kind still give it: their order is kept before that.
    const SERIAL_KEY: Option<fn(&Self::Input) -> String> = None;
    /// Frozen inputs.
    type Input: DeserializeOwned + Send + Sync;
    /// What the provider returned, stored as the outcome's output.
    type Output: Serialize + DeserializeOwned + Send + Sync;

    /// What the runtime must know about the kind.
    fn spec(&self) -> KindSpec;

    /// A request for this kind, for [`Record::owe`] and [`Intent::run`](crate::Intent::run): `operation_key` names the
    /// effect, and asking twice under one name is asking once.
    fn owed(operation_key: impl ToString, input: &Self::Input) -> Owed
    where
        Self: Sized,
        Self::Input: Serialize,
    {
        Owed::new(Self::KIND, &operation_key, Self::SERIAL_KEY, input)
    }

    /// Reads current consent, membership or approval on the primary, before a submission that cannot have left yet.
    /// It may only say that the effect is obsolete, never change inputs.
    fn guard(
        &self,
        _tx: &mut PgConnection,
        _operation: &Operation,
        _input: &Self::Input,
    ) -> impl Future<Output = Result<Guard, sqlx::Error>> + Send {
        async { Ok(Guard::Proceed) }
    }

    /// Calls the provider with the submission's key. No database connection is in reach.
    fn perform(
        &self,
        call: &Call,
        input: &Self::Input,
    ) -> impl Future<Output = Result<Self::Output, Failure>> + Send;

    /// Asks the provider what became of a submission. `evidence` is what earlier holders saw, newest first.
    fn resolve(
        &self,
        call: &Call,
        operation: &Operation,
        input: &Self::Input,
        evidence: &[Evidence],
    ) -> impl Future<Output = Result<Resolution<Self::Output>, Failure>> + Send;

    /// Writes the handler's rows, child events and child operations inside the fenced finish transaction, whether the
    /// generation succeeded, was rejected or became obsolete. Cancelled and expired operations never began.
    fn record(
        &self,
        _record: &mut Record<'_>,
        _input: &Self::Input,
        _conclusion: Conclusion<'_, Self::Output>,
    ) -> impl Future<Output = Result<(), crate::Error>> + Send {
        async { Ok(()) }
    }
}

/// One desired state that is reread and converged (`reconcile` mode).
pub trait Reconcile: Send + Sync + 'static {
    /// Kind, for example `stripe.settlement`.
    const KIND: &'static str;
    /// Whether [`record`](Reconcile::record) writes anything.
    const RECORDS: bool = true;
    /// The serial key of its inputs: operations of one (organization, key) never overlap, whatever their kinds. Every
    /// request of the kind gets it when it is accepted, whatever its producer gave; `None` leaves each request its own.
    /// Producers of a [`Fifo`](crate::Serial::Fifo) kind still give it: their order is kept before that.
    const SERIAL_KEY: Option<fn(&Self::Input) -> String> = None;
    /// Ids that name the desired state.
    type Input: DeserializeOwned + Send + Sync;
    /// Desired state, as read from authoritative rows.
    type Desired: Send + Sync;
    /// What was found or made, stored as the outcome's output.
    type Output: Serialize + DeserializeOwned + Send + Sync;

    /// What the runtime must know about the kind.
    fn spec(&self) -> KindSpec;

    /// A request for this kind, for [`Record::owe`] and [`Intent::run`](crate::Intent::run): `operation_key` names the
    /// effect, and asking twice under one name is asking once, at a newer generation.
    fn owed(operation_key: impl ToString, input: &Self::Input) -> Owed
    where
        Self: Sized,
        Self::Input: Serialize,
    {
        Owed::new(Self::KIND, &operation_key, Self::SERIAL_KEY, input)
    }

    /// Rereads authoritative state in a short transaction on the primary, begun after the claim committed.
    fn read(
        &self,
        tx: &mut PgConnection,
        operation: &Operation,
        input: &Self::Input,
    ) -> impl Future<Output = Result<Read<Self::Desired>, sqlx::Error>> + Send;

    /// Brings the provider to the desired state; every step must be repeatable. No database connection is in reach.
    fn converge(
        &self,
        call: &Call,
        input: &Self::Input,
        desired: &Self::Desired,
    ) -> impl Future<Output = Result<Step<Self::Output>, Failure>> + Send;

    /// Writes the handler's rows, child events and child operations inside the fenced finish transaction, whether the
    /// generation succeeded, was rejected or became obsolete. Cancelled and expired operations never began.
    fn record(
        &self,
        _record: &mut Record<'_>,
        _input: &Self::Input,
        _conclusion: Conclusion<'_, Self::Output>,
    ) -> impl Future<Output = Result<(), crate::Error>> + Send {
        async { Ok(()) }
    }

    /// A person is asked ([`Step::Person`]): writes what the application should show, and emits what it should hear, in
    /// the transaction that leaves the operation to them. The generation has not ended, so nothing is recorded as done.
    fn ask_person(
        &self,
        _record: &mut Record<'_>,
        _input: &Self::Input,
        _why: &Failure,
    ) -> impl Future<Output = Result<(), crate::Error>> + Send {
        async { Ok(()) }
    }
}
