//! The finish and leave statements' arrays, in id order so that two batches never wait for each other crosswise.

use crate::finish::{Ended, How};
use uuid::Uuid;

#[derive(Default)]
pub(crate) struct Finishing {
    pub(crate) id: Vec<Uuid>,
    pub(crate) token: Vec<i64>,
    pub(crate) nonce: Vec<i64>,
    pub(crate) lease: Vec<i64>,
    pub(crate) outcome: Vec<String>,
    pub(crate) code: Vec<Option<String>>,
    pub(crate) detail: Vec<Option<String>>,
    pub(crate) output: Vec<Option<String>>,
}

#[derive(Default)]
pub(crate) struct Leaving {
    pub(crate) id: Vec<Uuid>,
    pub(crate) token: Vec<i64>,
    pub(crate) nonce: Vec<i64>,
    pub(crate) lease: Vec<i64>,
    pub(crate) state: Vec<String>,
    pub(crate) delay_ms: Vec<i64>,
    pub(crate) counted: Vec<bool>,
    pub(crate) next_submission: Vec<bool>,
    pub(crate) repeatable: Vec<bool>,
    pub(crate) class: Vec<Option<String>>,
    pub(crate) code: Vec<Option<String>>,
    pub(crate) detail: Vec<Option<String>>,
}

#[derive(Default)]
pub(crate) struct Evidencing {
    pub(crate) id: Vec<Uuid>,
    pub(crate) generation: Vec<i64>,
    pub(crate) submission: Vec<i32>,
    pub(crate) attempt: Vec<i32>,
    pub(crate) token: Vec<i64>,
    pub(crate) fenced: Vec<bool>,
    pub(crate) class: Vec<String>,
    pub(crate) code: Vec<String>,
    pub(crate) detail: Vec<Option<String>>,
    pub(crate) evidence: Vec<Option<String>>,
}

impl Finishing {
    pub(crate) fn push(&mut self, ended: &Ended) {
        let How::Finish { outcome, code, detail, output, .. } = &ended.how else { return };
        self.id.push(ended.claim.operation.id);
        self.token.push(ended.claim.fence.token);
        self.nonce.push(ended.claim.fence.nonce);
        self.lease.push(ended.claim.fence.lease);
        self.outcome.push(outcome.as_str().to_owned());
        self.code.push(code.clone());
        self.detail.push(detail.clone());
        self.output.push(output.clone());
    }
}

impl Leaving {
    pub(crate) fn push(&mut self, ended: &Ended) {
        let How::Leave { state, delay, counted, next_submission, repeatable, failure } = &ended.how else {
            return;
        };
        self.id.push(ended.claim.operation.id);
        self.token.push(ended.claim.fence.token);
        self.nonce.push(ended.claim.fence.nonce);
        self.lease.push(ended.claim.fence.lease);
        self.state.push(state.as_str().to_owned());
        self.delay_ms.push(i64::try_from(delay.as_millis()).unwrap_or(i64::MAX));
        self.counted.push(*counted);
        self.next_submission.push(*next_submission);
        self.repeatable.push(*repeatable);
        self.class.push(failure.as_ref().map(|f| f.class.as_str().to_owned()));
        self.code.push(failure.as_ref().map(|f| f.code.to_string()));
        self.detail.push(failure.as_ref().map(|f| f.detail.clone()));
    }
}

impl Evidencing {
    /// Evidence of an attempt that failed, or, for `fenced`, of a result that came too late.
    pub(crate) fn push(&mut self, ended: &Ended, fenced: bool) {
        let (class, code, detail, evidence) = match &ended.how {
            How::Leave { failure: Some(failure), .. } => (
                failure.class.as_str().to_owned(),
                failure.code.to_string(),
                Some(failure.detail.clone()),
                failure.evidence.as_ref().map(ToString::to_string),
            ),
            How::Leave { failure: None, .. } if !fenced => return,
            How::Leave { failure: None, state, .. } => {
                (state.as_str().to_owned(), "released".to_owned(), None, None)
            }
            How::Finish { .. } if !fenced => return,
            How::Finish { outcome, code, detail, output, .. } => (
                outcome.as_str().to_owned(),
                code.clone().unwrap_or_else(|| "fenced".to_owned()),
                detail.clone(),
                output.clone(),
            ),
        };
        let operation = &ended.claim.operation;
        self.id.push(operation.id);
        self.generation.push(operation.generation);
        self.submission.push(operation.submission);
        self.attempt.push(operation.attempt);
        self.token.push(ended.claim.fence.token);
        self.fenced.push(fenced);
        self.class.push(class);
        self.code.push(code);
        self.detail.push(detail);
        self.evidence.push(evidence);
    }

    pub(crate) async fn write(&self, tx: &mut sqlx::PgConnection) -> Result<(), sqlx::Error> {
        if self.id.is_empty() {
            return Ok(());
        }
        sqlx::query_file!(
            "sql/add_evidence.sql",
            &self.id,
            &self.generation,
            &self.submission,
            &self.attempt,
            &self.token,
            &self.fenced,
            &self.class,
            &self.code,
            &self.detail as _,
            &self.evidence as _,
        )
        .execute(tx)
        .await?;
        Ok(())
    }
}
