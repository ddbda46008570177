//! Handlers whose provider is the test.

use anyhow::{Context, Result};
use backline_failure::{Call, Failure, Mode, Resolution};
use backline_runtime::{Command, Evidence, KindSpec, Operation, Read, Reconcile, Step};
use serde_json::Value;
use sqlx::PgConnection;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, Semaphore, mpsc};
use uuid::Uuid;

use crate::support::SOON;

/// The test's side of a handler.
pub(crate) struct Told<T>(Mutex<mpsc::UnboundedReceiver<T>>);

impl<T> Told<T> {
    pub(crate) async fn next(&self) -> Result<T> {
        let mut told = self.0.lock().await;
        let next = tokio::time::timeout(SOON, told.recv()).await.context("the handler says nothing")?;
        next.context("the handler is gone")
    }
}

pub(crate) fn channel<T>() -> (mpsc::UnboundedSender<T>, Told<T>) {
    let (tell, told) = mpsc::unbounded_channel();
    (tell, Told(Mutex::new(told)))
}

/// A command that says which operation it performs and waits for leave.
#[derive(Clone)]
pub(crate) struct Gated {
    began: mpsc::UnboundedSender<Uuid>,
    pub(crate) leave: Arc<Semaphore>,
}

impl Gated {
    pub(crate) fn new(leave: usize) -> (Self, Told<Uuid>) {
        let (began, told) = channel();
        (Self { began, leave: Arc::new(Semaphore::new(leave)) }, told)
    }
}

impl Command for Gated {
    const KIND: &'static str = "test.gated";
    const RECORDS: bool = false;
    const GUARDS: bool = false;
    type Input = Value;
    type Output = Value;

    fn spec(&self) -> KindSpec {
        KindSpec::new(Mode::Command, "test").with_native_idempotency(Duration::from_secs(3600))
    }

    async fn perform(&self, call: &Call, _input: &Value) -> Result<Value, Failure> {
        let _gone = self.began.send(call.operation_id);
        self.leave.acquire().await.map_err(|_| Failure::poison("test.closed"))?.forget();
        Ok(Value::from(call.attempt))
    }

    async fn resolve(
        &self,
        _call: &Call,
        _operation: &Operation,
        _input: &Value,
        _evidence: &[Evidence],
    ) -> Result<Resolution<Value>, Failure> {
        Ok(Resolution::StillUnknown)
    }
}

/// A reconcile attempt of many requests, each as long as a request may take. It starts none past its deadline.
pub(crate) struct Long {
    pub(crate) requests: usize,
    pub(crate) request: Duration,
    began: mpsc::UnboundedSender<Call>,
    /// Told when the deadline kept it from another request.
    pub(crate) kept: Arc<Semaphore>,
}

impl Long {
    pub(crate) fn new(requests: usize, request: Duration) -> (Self, Told<Call>) {
        let (began, told) = channel();
        (Self { requests, request, began, kept: Arc::new(Semaphore::new(0)) }, told)
    }
}

impl Reconcile for Long {
    const KIND: &'static str = "test.long";
    const RECORDS: bool = false;
    type Input = Value;
    type Desired = ();
    type Output = usize;

    fn spec(&self) -> KindSpec {
        KindSpec { request_timeout: self.request, ..KindSpec::new(Mode::Reconcile, "test") }
    }

    async fn read(&self, _: &mut PgConnection, _: &Operation, _: &Value) -> Result<Read<()>, sqlx::Error> {
        Ok(Read::Desired(()))
    }

    async fn converge(&self, call: &Call, _input: &Value, _: &()) -> Result<Step<usize>, Failure> {
        for _ in 0..self.requests {
            if call.deadline.passed() {
                self.kept.add_permits(1);
                return Err(Failure::rejected("test.deadline_passed"));
            }
            let _gone = self.began.send(call.clone());
            // The provider's time to answer.
            tokio::time::sleep(self.request).await;
        }
        Ok(Step::Done(self.requests))
    }
}
