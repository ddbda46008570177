//! One attempt: prepare, perform or resolve, and how it ended.

use crate::author::erased::{Handler, Performed, PrepareError, Prepared};
use crate::author::{Evidence, KindSpec};
use crate::claim::Claim;
use crate::finish::How;
use crate::flow::Budgets;
use crate::observe::spans;
use crate::run::call::{OpenCall, perform};
use crate::run::ending::{after_failure, manual, release, still_unknown};
use crate::transition::State;
use backline_crash_point::seeded_bug;
use backline_failure::{Class, Failure, Mode, Resolution};
use backline_outbox::{Explained, run_tx};
use backline_telemetry::{FutureExt as _, Recording};
use futures_util::FutureExt;
use sqlx::PgPool;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tracing::Instrument;

/// Pause of a claim that was given back because the database did not answer.
const DATABASE_PAUSE: Duration = Duration::from_secs(1);

/// What attempts of one process share.
#[derive(Clone)]
pub(crate) struct Attempts {
    pub(crate) pool: PgPool,
    pub(crate) budgets: Budgets,
}

impl Attempts {
    /// Runs one attempt to its end. A handler's panic is an answer, wherever it comes from: left to its lease, the
    /// operation would come again for ever and show nobody why.
    pub(crate) async fn run(&self, handler: Arc<dyn Handler>, claim: &Claim) -> How {
        let operation = &claim.operation;
        let span = tracing::info_span!("attempt", kind = handler.kind(), operation.id = %operation.id,
            operation.attempt = operation.attempt, operation.submission = operation.submission,
            correlation.id = %operation.correlation_id);
        let recording = spans::attempt(operation);
        let trace = backline_telemetry::within(recording.as_ref(), operation.traceparent.as_deref());
        let started = tokio::time::Instant::now();
        let how = self
            .phases(handler.as_ref(), claim, recording.as_ref())
            .instrument(span.clone())
            .with_context(trace)
            .await;
        if let Some(recording) = &recording {
            spans::ended(recording, &how);
        }
        let result = match &how {
            How::Finish { outcome, .. } => outcome.as_str(),
            How::Leave { failure: Some(failure), .. } => failure.class.as_str(),
            How::Leave { failure: None, .. } => "released",
        };
        metrics::histogram!("backline_attempt_duration_seconds", "kind" => handler.kind(), "result" => result)
            .record(started.elapsed().as_secs_f64());
        if let How::Leave { failure: Some(failure), state, .. } = &how {
            metrics::counter!("backline_attempt_failures_total", "kind" => handler.kind(), "class" => failure.class.as_str())
                .increment(1);
            span.in_scope(|| tracing::info!(class = failure.class.as_str(), code = %failure.code, next = state.as_str(), "attempt failed"));
        }
        how
    }

    /// What most attempts do not need is boxed: a future is as large as its largest part, and every attempt is moved
    /// into a task of its own.
    async fn phases(&self, handler: &dyn Handler, claim: &Claim, span: Option<&Recording>) -> How {
        let spec = handler.spec();
        if claim.resolving {
            return Box::pin(self.resolve(handler, spec, claim, span)).await;
        }
        if !claim.may_have_left {
            if claim.cancel_requested {
                return How::finish(State::Cancelled, Some("cancel_requested"), None);
            }
            if claim.expired {
                return How::finish(State::Expired, Some("expired"), None);
            }
            if u32::try_from(claim.operation.attempt).unwrap_or(u32::MAX) > spec.policy.max_attempts {
                // Claims that crashed their process every time: nothing came back to decide on.
                let failure =
                    Failure::transient("attempts_spent").with_detail("every attempt ended without an answer");
                return after_failure(spec, claim, failure, false);
            }
        }
        if claim.input_version > spec.max_input_version {
            return release(claim, DATABASE_PAUSE);
        }
        let preparing = handler.prepare(&self.pool, &claim.operation, &claim.input, claim.may_have_left);
        // As a panic of perform before anything left: its transaction rolls back, and the provider heard nothing.
        let prepared = AssertUnwindSafe(preparing).catch_unwind().await.unwrap_or_else(|_panic| {
            Err(PrepareError::Poison(Failure::poison("panicked").with_detail("in read or guard")))
        });
        let prepared = match prepared {
            Ok(Prepared::Proceed(prepared)) => prepared,
            Ok(Prepared::Obsolete { rule, seen }) => {
                return How::finish(State::Obsolete, Some(rule), Some(seen));
            }
            Err(PrepareError::Poison(failure)) => return after_failure(spec, claim, failure, false),
            Err(PrepareError::Database(error)) => {
                let error = Explained(&error);
                tracing::warn!(%error, "read or guard could not ask the database");
                return release(claim, DATABASE_PAUSE);
            }
        };
        let permit = match Box::pin(self.budgets.take(&spec.provider_account)).await {
            Ok(permit) => permit,
            // Its wait for a connection ran out while it slept; the defect is that it calls all the same.
            Err(_) if seeded_bug(24) => None,
            Err(error) => {
                tracing::warn!(%error, "no provider budget");
                return release(claim, DATABASE_PAUSE);
            }
        };
        let Some(call) = OpenCall::new(spec, claim, span, &self.budgets, permit) else {
            return release(claim, Duration::ZERO);
        };
        // A kind without a key at the provider: the mark must be durable before the request may leave.
        if spec.idempotency_window.is_none()
            && spec.mode != Mode::Reconcile
            && !Box::pin(self.mark_left(claim)).await
        {
            return release(claim, Duration::ZERO);
        }
        let result = perform(handler, &call, prepared.as_ref()).await;
        match result {
            Ok(Performed::Output(output)) => {
                How::Finish { outcome: State::Succeeded, code: None, detail: None, output: Some(output) }
            }
            Ok(Performed::Again(wait)) => How::Leave {
                state: State::Ready,
                delay: wait,
                counted: false,
                next_submission: false,
                repeatable: true,
                failure: None,
            },
            Ok(Performed::Person(why)) => manual(why),
            Err(failure) => {
                Box::pin(self.tell(spec, &call, &failure)).await;
                after_failure(spec, claim, failure, call.may_have_left())
            }
        }
    }

    async fn resolve(
        &self,
        handler: &dyn Handler,
        spec: &KindSpec,
        claim: &Claim,
        span: Option<&Recording>,
    ) -> How {
        let evidence = match self.evidence(claim).await {
            Ok(evidence) => evidence,
            Err(error) => {
                tracing::warn!(%error, "evidence could not be read");
                return release(claim, DATABASE_PAUSE);
            }
        };
        let permit = match Box::pin(self.budgets.take(&spec.provider_account)).await {
            Ok(permit) => permit,
            Err(_) => return release(claim, DATABASE_PAUSE),
        };
        let Some(call) = OpenCall::new(spec, claim, span, &self.budgets, permit) else {
            return release(claim, Duration::ZERO);
        };
        let looked = AssertUnwindSafe(handler.resolve(&call, &claim.operation, &claim.input, &evidence))
            .catch_unwind()
            .await;
        let quiet = claim.absent_in_ms.filter(|ms| *ms > 0).and_then(|ms| u64::try_from(ms).ok());
        match looked {
            Ok(Ok(Resolution::Applied(output))) => {
                metrics::counter!("backline_unknowns_resolved_total", "kind" => handler.kind(), "as" => "applied").increment(1);
                How::Finish {
                    outcome: State::Succeeded,
                    code: Some("resolved".to_owned()),
                    detail: None,
                    output: Some(output),
                }
            }
            Ok(Ok(Resolution::NotApplied)) => match quiet {
                // A request may still be on its way, or applied and not visible yet.
                Some(ms) => still_unknown(spec, claim, "absent_too_early", Some(Duration::from_millis(ms))),
                None => {
                    metrics::counter!("backline_unknowns_resolved_total", "kind" => handler.kind(), "as" => "not_applied").increment(1);
                    proved_absent(claim)
                }
            },
            Ok(Ok(Resolution::StillUnknown)) => still_unknown(spec, claim, "lookup_undecided", None),
            Ok(Ok(Resolution::Conflict(why))) => {
                manual(Failure::new(Class::Unknown, "lookup_conflict").with_detail(why))
            }
            Ok(Err(failure)) => {
                Box::pin(self.tell(spec, &call, &failure)).await;
                let jitter = rand::random();
                let wait =
                    backline_failure::backoff(3, spec.policy.backoff_base, spec.policy.backoff_cap, jitter)
                        .max(failure.retry_after.unwrap_or_default());
                let code = if failure.class == Class::Poison { "input_undecodable" } else { "lookup_failed" };
                let uncounted = matches!(failure.class, Class::Throttled | Class::Blocked);
                still_unknown(spec, claim, code, uncounted.then_some(wait))
            }
            Err(_panic) => still_unknown(spec, claim, "lookup_panicked", None),
        }
    }

    /// Tells the fleet what concerns more than this operation.
    async fn tell(&self, spec: &KindSpec, call: &OpenCall, failure: &Failure) {
        let told = match failure.class {
            Class::Throttled if call.told() => Ok(()),
            Class::Throttled => {
                let wait = failure.retry_after.unwrap_or_default().min(spec.policy.retry_after_cap);
                self.budgets.throttled(&spec.provider_account, wait).await.map_err(|e| e.to_string())
            }
            Class::Blocked => {
                tracing::error!(provider = spec.provider_account, code = %failure.code, "provider account is blocked and paused");
                metrics::counter!("backline_provider_blocked_total", "provider" => spec.provider_account.clone()).increment(1);
                sqlx::query_file!("sql/pause_account.sql", spec.provider_account, failure.code.as_ref())
                    .execute(&self.pool)
                    .await
                    .map(drop)
                    .map_err(|e| e.to_string())
            }
            _ => Ok(()),
        };
        if let Err(error) = told {
            tracing::warn!(error, "the fleet could not be told");
        }
    }

    async fn mark_left(&self, claim: &Claim) -> bool {
        let (id, fence) = (claim.operation.id, claim.fence);
        let marked = run_tx!(&self.pool, "mark_left", |tx| async {
            sqlx::query_file_scalar!("sql/mark_left.sql", &[id], &[fence.token], &[fence.nonce])
                .fetch_optional(&mut *tx)
                .await
        });
        matches!(marked, Ok(Some(_)))
    }

    async fn evidence(&self, claim: &Claim) -> Result<Vec<Evidence>, sqlx::Error> {
        let operation = &claim.operation;
        let rows = sqlx::query_file!(
            "sql/read_evidence.sql",
            operation.id,
            operation.generation,
            operation.submission
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| Evidence {
                class: row.class,
                code: row.code,
                fenced: row.fenced,
                facts: row.evidence.and_then(|text| serde_json::from_str(&text).ok()),
            })
            .collect())
    }
}

/// A definite non-application: the next submission may be presented, unless the operation is no longer wanted.
fn proved_absent(claim: &Claim) -> How {
    if claim.cancel_requested {
        return How::finish(
            State::Cancelled,
            Some("cancel_requested"),
            Some("proved not applied".to_owned()),
        );
    }
    if claim.expired {
        return How::finish(State::Expired, Some("expired"), Some("proved not applied".to_owned()));
    }
    How::Leave {
        state: State::Ready,
        delay: Duration::ZERO,
        counted: true,
        next_submission: true,
        repeatable: true,
        failure: None,
    }
}
