//! The one seam where handlers lose their types: the runtime keeps them in a map by kind.

use crate::Error;
use crate::author::{
    Command, Conclusion, Evidence, Guard, KindSpec, Operation, Read, Reconcile, Record, Step,
};
use crate::transition::State;
use backline_failure::{Call, Failure, Resolution};
use backline_outbox::run_tx;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::PgPool;
use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

pub(crate) type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Inputs and desired state, ready for the provider.
pub(crate) enum Prepared {
    Proceed(Box<dyn Any + Send + Sync>),
    Obsolete { rule: &'static str, seen: String },
}

/// What perform brought.
pub(crate) enum Performed {
    /// The output as JSON text.
    Output(String),
    /// Not there yet.
    Again(Duration),
    /// Only a person can go on.
    Person(Failure),
}

pub(crate) trait Handler: Send + Sync {
    fn kind(&self) -> &'static str;
    fn spec(&self) -> &KindSpec;
    fn records(&self) -> bool;
    /// What the kind derives from an input; none where it derives nothing, or the input cannot be read.
    fn serial_key(&self, input: &str) -> Option<String>;
    /// Decodes the input and asks guard or read, in a short transaction of its own.
    fn prepare<'a>(
        &'a self,
        pool: &'a PgPool,
        operation: &'a Operation,
        input: &'a str,
        may_have_left: bool,
    ) -> Boxed<'a, Result<Prepared, PrepareError>>;
    fn perform<'a>(
        &'a self,
        call: &'a Call,
        prepared: &'a (dyn Any + Send + Sync),
    ) -> Boxed<'a, Result<Performed, Failure>>;
    fn resolve<'a>(
        &'a self,
        call: &'a Call,
        operation: &'a Operation,
        input: &'a str,
        evidence: &'a [Evidence],
    ) -> Boxed<'a, Result<Resolution<String>, Failure>>;
    fn record<'a>(
        &'a self,
        record: Record<'a>,
        input: &'a str,
        ending: Ending<'a>,
    ) -> Boxed<'a, Result<(), Error>>;
    /// What goes with asking a person; commands write nothing then.
    fn ask_person<'a>(
        &'a self,
        record: Record<'a>,
        input: &'a str,
        why: &'a Failure,
    ) -> Boxed<'a, Result<(), Error>>;
}

/// The end of a generation as stored, before it gets the handler's types back.
#[derive(Clone, Copy)]
pub(crate) struct Ending<'a> {
    pub(crate) outcome: State,
    pub(crate) code: &'a str,
    pub(crate) detail: &'a str,
    pub(crate) output: Option<&'a str>,
}

impl<'a> Ending<'a> {
    fn conclusion<T>(&self, output: Option<&'a T>) -> Result<Conclusion<'a, T>, Error> {
        match (self.outcome, output) {
            (State::Succeeded, Some(output)) => Ok(Conclusion::Succeeded(output)),
            (State::Rejected, _) => Ok(Conclusion::Rejected { code: self.code, detail: self.detail }),
            (State::Obsolete, _) => Ok(Conclusion::Obsolete { rule: self.code }),
            (other, _) => Err(Error::Record(format!("{} has nothing to record", other.as_str()))),
        }
    }
}

/// Why an operation could not be prepared.
pub(crate) enum PrepareError {
    /// The inputs cannot be read by this build, or the handler panicked over them.
    Poison(Failure),
    /// The database did not answer: the claim is released, no attempt is spent.
    Database(sqlx::Error),
}

/// The key that a kind derives; none from an input that cannot be read.
fn derived<T: DeserializeOwned>(of: Option<fn(&T) -> String>, input: &str) -> Option<String> {
    let of = of?;
    serde_json::from_str(input).ok().map(|input| of(&input))
}

fn decode<T: DeserializeOwned>(input: &str) -> Result<T, Failure> {
    // serde_json's default recursion limit (128) refuses stack-deep documents.
    serde_json::from_str(input).map_err(|error| {
        Failure::poison("input_undecodable").with_detail(format!(
            "line {} column {}",
            error.line(),
            error.column()
        ))
    })
}

fn encode<T: Serialize>(output: &T) -> Result<String, Failure> {
    serde_json::to_string(output)
        .map_err(|error| Failure::unknown("output_unencodable").with_detail(error.to_string()))
}

pub(crate) struct CommandHandler<H> {
    pub(crate) inner: H,
    pub(crate) spec: KindSpec,
}

impl<H: Command> Handler for CommandHandler<H> {
    fn kind(&self) -> &'static str {
        H::KIND
    }
    fn spec(&self) -> &KindSpec {
        &self.spec
    }
    fn records(&self) -> bool {
        H::RECORDS
    }
    fn serial_key(&self, input: &str) -> Option<String> {
        derived(H::SERIAL_KEY, input)
    }
    fn prepare<'a>(
        &'a self,
        pool: &'a PgPool,
        operation: &'a Operation,
        input: &'a str,
        may_have_left: bool,
    ) -> Boxed<'a, Result<Prepared, PrepareError>> {
        Box::pin(async move {
            let input: H::Input = decode(input).map_err(PrepareError::Poison)?;
            if H::GUARDS && !may_have_left {
                let guard =
                    Box::pin(async { run_tx!(pool, "guard", |tx| self.inner.guard(tx, operation, &input)) });
                let guard = guard.await;
                if let Guard::Obsolete { rule, seen } = guard.map_err(PrepareError::Database)? {
                    return Ok(Prepared::Obsolete { rule, seen });
                }
            }
            Ok(Prepared::Proceed(Box::new(input)))
        })
    }
    fn perform<'a>(
        &'a self,
        call: &'a Call,
        prepared: &'a (dyn Any + Send + Sync),
    ) -> Boxed<'a, Result<Performed, Failure>> {
        Box::pin(async move {
            let input = prepared.downcast_ref::<H::Input>().ok_or_else(mixed_up)?;
            let output = self.inner.perform(call, input).await?;
            encode(&output).map(Performed::Output)
        })
    }
    fn resolve<'a>(
        &'a self,
        call: &'a Call,
        operation: &'a Operation,
        input: &'a str,
        evidence: &'a [Evidence],
    ) -> Boxed<'a, Result<Resolution<String>, Failure>> {
        Box::pin(async move {
            let input: H::Input = decode(input)?;
            Ok(match self.inner.resolve(call, operation, &input, evidence).await? {
                Resolution::Applied(output) => Resolution::Applied(encode(&output)?),
                Resolution::NotApplied => Resolution::NotApplied,
                Resolution::StillUnknown => Resolution::StillUnknown,
                Resolution::Conflict(why) => Resolution::Conflict(why),
            })
        })
    }
    fn record<'a>(
        &'a self,
        mut record: Record<'a>,
        input: &'a str,
        ending: Ending<'a>,
    ) -> Boxed<'a, Result<(), Error>> {
        Box::pin(async move {
            let (input, output) = recorded(input, &ending)?;
            self.inner.record(&mut record, &input, ending.conclusion(output.as_ref())?).await
        })
    }
    fn ask_person<'a>(
        &'a self,
        _record: Record<'a>,
        _input: &'a str,
        _why: &'a Failure,
    ) -> Boxed<'a, Result<(), Error>> {
        Box::pin(async { Ok(()) })
    }
}

pub(crate) struct ReconcileHandler<H> {
    pub(crate) inner: H,
    pub(crate) spec: KindSpec,
}

impl<H: Reconcile> Handler for ReconcileHandler<H> {
    fn kind(&self) -> &'static str {
        H::KIND
    }
    fn spec(&self) -> &KindSpec {
        &self.spec
    }
    fn records(&self) -> bool {
        H::RECORDS
    }
    fn serial_key(&self, input: &str) -> Option<String> {
        derived(H::SERIAL_KEY, input)
    }
    fn prepare<'a>(
        &'a self,
        pool: &'a PgPool,
        operation: &'a Operation,
        input: &'a str,
        _may_have_left: bool,
    ) -> Boxed<'a, Result<Prepared, PrepareError>> {
        Box::pin(async move {
            let input: H::Input = decode(input).map_err(PrepareError::Poison)?;
            let read = run_tx!(pool, "read", |tx| self.inner.read(tx, operation, &input));
            Ok(match read.map_err(PrepareError::Database)? {
                Read::Desired(desired) => Prepared::Proceed(Box::new((input, desired))),
                Read::Obsolete { rule, seen } => Prepared::Obsolete { rule, seen },
            })
        })
    }
    fn perform<'a>(
        &'a self,
        call: &'a Call,
        prepared: &'a (dyn Any + Send + Sync),
    ) -> Boxed<'a, Result<Performed, Failure>> {
        Box::pin(async move {
            let (input, desired) = prepared.downcast_ref::<(H::Input, H::Desired)>().ok_or_else(mixed_up)?;
            Ok(match self.inner.converge(call, input, desired).await? {
                Step::Done(output) => Performed::Output(encode(&output)?),
                Step::Again(wait) => Performed::Again(wait),
                Step::Person(why) => Performed::Person(why),
            })
        })
    }
    fn resolve<'a>(
        &'a self,
        _call: &'a Call,
        _operation: &'a Operation,
        _input: &'a str,
        _evidence: &'a [Evidence],
    ) -> Boxed<'a, Result<Resolution<String>, Failure>> {
        // A reconcile operation is never unknown: reading again is the resolution.
        Box::pin(async { Ok(Resolution::NotApplied) })
    }
    fn record<'a>(
        &'a self,
        mut record: Record<'a>,
        input: &'a str,
        ending: Ending<'a>,
    ) -> Boxed<'a, Result<(), Error>> {
        Box::pin(async move {
            let (input, output) = recorded(input, &ending)?;
            self.inner.record(&mut record, &input, ending.conclusion(output.as_ref())?).await
        })
    }
    fn ask_person<'a>(
        &'a self,
        mut record: Record<'a>,
        input: &'a str,
        why: &'a Failure,
    ) -> Boxed<'a, Result<(), Error>> {
        Box::pin(async move {
            let input = serde_json::from_str(input).map_err(|e| Error::Record(format!("input: {e}")))?;
            self.inner.ask_person(&mut record, &input, why).await
        })
    }
}

fn recorded<I: DeserializeOwned, O: DeserializeOwned>(
    input: &str,
    ending: &Ending<'_>,
) -> Result<(I, Option<O>), Error> {
    let input = serde_json::from_str(input).map_err(|e| Error::Record(format!("input: {e}")))?;
    let output = ending.output.map(serde_json::from_str).transpose();
    Ok((input, output.map_err(|e| Error::Record(format!("output: {e}")))?))
}

fn mixed_up() -> Failure {
    Failure::poison("prepared_for_another_handler")
}
