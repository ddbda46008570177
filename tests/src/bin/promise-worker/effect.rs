//! Command kinds of every shape: with and without a key at the provider, rows of their own, serial keys and children.

use crate::provider::{Made, Provider};
use crate::{ACCOUNT, Settings};
use backline_envelope::Event;
use backline_failure::{Call, Failure, Mode, Resolution};
use backline_runtime::{Command, Conclusion, Error, Evidence, Guard, KindSpec, Operation, Record};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::PgConnection;
use std::marker::PhantomData;
use std::time::Duration;

/// Input of every kind.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Order {
    /// What the provider gets.
    pub(crate) value: Value,
    /// What the handler does at each attempt; the last is repeated, none = submit.
    pub(crate) acts: Vec<Act>,
    /// Operations that the record asks for.
    pub(crate) children: u32,
}

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Act {
    /// Submits.
    #[default]
    Submit,
    /// Submits and waits as long as it takes, however often the lease is renewed meanwhile.
    Patient,
    /// Panics before anything can have left.
    PanicBefore,
    /// Panics after the provider has answered.
    PanicAfter,
    /// Fails before anything can have left.
    Transient,
    /// Cannot read its input.
    Poison,
    /// Blocks its thread for a second, three leases of the shortest test.
    Hog,
}

/// What makes one kind different.
pub(crate) trait Shape: Send + Sync + 'static {
    const KIND: &'static str;
    const RECORDS: bool = false;
    const GUARDS: bool = false;
    fn shape(spec: KindSpec, window: Duration) -> KindSpec {
        spec.with_native_idempotency(window)
    }
}

macro_rules! shapes {
    ($($(#[$doc:meta])* $name:ident = $kind:literal { $($body:tt)* })+) => {
        $($(#[$doc])* pub(crate) struct $name;
        impl Shape for $name { const KIND: &'static str = $kind; $($body)* })+
    };
}

shapes! {
    /// A key at the provider, and rows in its record.
    Keyed = "effect.keyed" { const RECORDS: bool = true; }
    /// A key at the provider, ended in batches.
    Bare = "effect.bare" {}
    /// No key at the provider: the may-have-left mark and lookups.
    Plain = "effect.plain" {
        const RECORDS: bool = true;
        fn shape(spec: KindSpec, _window: Duration) -> KindSpec { spec }
    }
    /// Serial keys exclude.
    Serial = "effect.serial" {
        fn shape(spec: KindSpec, window: Duration) -> KindSpec {
            KindSpec { serial: backline_runtime::Serial::Exclusive, ..spec.with_native_idempotency(window) }
        }
    }
    /// Serial keys keep the order.
    Fifo = "effect.fifo" {
        fn shape(spec: KindSpec, window: Duration) -> KindSpec {
            KindSpec { serial: backline_runtime::Serial::Fifo, ..spec.with_native_idempotency(window) }
        }
    }
    /// Asks for children in its record.
    Parent = "effect.parent" { const RECORDS: bool = true; }
    /// Asks before it acts, and panics instead of answering.
    Guarded = "effect.guarded" { const GUARDS: bool = true; }
    /// Known to newer builds only.
    Spare = "effect.spare" {}
}

pub(crate) struct Effect<S> {
    provider: Provider,
    spec: KindSpec,
    shape: PhantomData<S>,
}

impl<S: Shape> Effect<S> {
    pub(crate) fn new(provider: &Provider, settings: &Settings) -> Effect<S> {
        let spec = settings.shape(S::shape(KindSpec::new(Mode::Command, ACCOUNT), settings.window));
        Effect { provider: provider.clone(), spec, shape: PhantomData }
    }
}

/// The fact that a record emits.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ThingDone {
    outcome: String,
}

impl Event for ThingDone {
    const TYPE: &'static str = "ThingDone";
    const VERSION: i32 = 1;
}

impl<S: Shape> Command for Effect<S> {
    const KIND: &'static str = S::KIND;
    const RECORDS: bool = S::RECORDS;
    const GUARDS: bool = S::GUARDS;
    type Input = Order;
    type Output = Made;

    fn spec(&self) -> KindSpec {
        self.spec.clone()
    }

    #[expect(clippy::panic, reason = "a guard's panic is what the test provokes")]
    async fn guard(
        &self,
        _tx: &mut PgConnection,
        _operation: &Operation,
        _order: &Order,
    ) -> Result<Guard, sqlx::Error> {
        panic!("provoked in a guard")
    }

    #[expect(clippy::panic, reason = "a handler's panic is what the test provokes")]
    async fn perform(&self, call: &Call, order: &Order) -> Result<Made, Failure> {
        let nth = usize::try_from(call.attempt.max(1)).unwrap_or(1) - 1;
        let act = order.acts.get(nth).or(order.acts.last()).copied().unwrap_or_default();
        match act {
            Act::PanicBefore => panic!("provoked before anything left"),
            Act::Transient => return Err(Failure::transient("promise.not_now")),
            Act::Poison => return Err(Failure::poison("promise.unreadable_input")),
            #[expect(clippy::disallowed_methods, reason = "blocking the executor is what the test provokes")]
            Act::Hog => std::thread::sleep(Duration::from_secs(1)),
            _ => {}
        }
        let patience = matches!(act, Act::Patient).then_some(Duration::from_secs(60));
        let made = self.provider.submit(call, S::KIND, &order.value, patience).await;
        if matches!(act, Act::PanicAfter) {
            panic!("provoked after the request left");
        }
        made
    }

    async fn resolve(
        &self,
        call: &Call,
        _operation: &Operation,
        _order: &Order,
        _evidence: &[Evidence],
    ) -> Result<Resolution<Made>, Failure> {
        self.provider.find(call).await
    }

    async fn record(
        &self,
        record: &mut Record<'_>,
        order: &Order,
        end: Conclusion<'_, Made>,
    ) -> Result<(), Error> {
        let outcome = match end {
            Conclusion::Succeeded(_) => "succeeded",
            Conclusion::Rejected { .. } => "rejected",
            Conclusion::Obsolete { .. } => "obsolete",
        };
        let (id, generation) = (record.operation().id, record.operation().generation);
        sqlx::query("insert into app.done (operation, generation, outcome) values ($1, $2, $3)")
            .bind(id)
            .bind(generation)
            .bind(outcome)
            .execute(record.connection())
            .await?;
        record
            .emit("done", "thing", &id.to_string(), None, &ThingDone { outcome: outcome.to_owned() })
            .await?;
        for child in 0..order.children {
            let order = Order { value: json!(child), ..Order::default() };
            record.owe(Effect::<Keyed>::owed(format!("{id}/{child}"), &order)).await?;
        }
        Ok(())
    }
}
