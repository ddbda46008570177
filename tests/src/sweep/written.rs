//! A request that is at the provider while its sender sleeps, its successor works, and the application changes its mind.

use crate::sweep::{Bench, Change, must_hold};
use crate::{SANDBOX, eventually};
use anyhow::Context;
use serde_json::json;
use std::fmt;

/// The zombie whose request is already written: one of each kind.
#[derive(Debug, Clone, Copy)]
pub struct Written(pub Change);

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} written by a zombie", self.0.request())
    }
}

impl Written {
    /// The provider holds the first request of the kind for longer than a lease, and carries it out within the time that
    /// the worker declares for late requests. Its sender is stopped meanwhile, and wakes up at the end.
    ///
    /// # Errors
    /// The request is not made, something does not come to rest, or an invariant is broken.
    pub async fn run(&self, bench: &mut Bench) -> anyhow::Result<()> {
        let kind = self.0.request();
        bench.stock().await?;
        bench.forget_slices().await?;
        let before = lines(bench, kind, "held")?;
        let rule = json!([{"match": {"provider": "twilio", "kind": kind}, "times": 1, "fault": {"kind": "slow", "delay": "2100ms"}}]);
        bench.stack().clear_faults(SANDBOX)?;
        bench.stack().add_faults(SANDBOX, &rule)?;
        let conversation = bench.change(self.0).await?;
        eventually("the request to be at the provider", async || Ok(lines(bench, kind, "held")? > before))
            .await?;
        bench.member("twilio")?.pause()?;
        if self.0 != Change::Delete {
            bench.undo(self.0, conversation).await?;
        }
        bench.forget_slices().await?;
        bench.add_twilio("twilio-2", &[])?;
        bench.member("twilio-2")?.start()?;
        bench.settled().await.context("while the sender was stopped")?;
        bench.member("twilio")?.resume()?;
        eventually("the stale write to be refused", async || {
            let sql = "select count(*) from backline.attempt_evidence e where code = 'lease_expired' and not exists (
                select from backline.attempt_evidence f where f.operation_id = e.operation_id and f.token = e.token and f.fenced)";
            Ok(sqlx::query_scalar::<_, i64>(sql).fetch_one(bench.pool()).await? == 0)
        })
        .await?;
        bench.settled().await?;
        bench.member("twilio-2")?.kill9()?;
        anyhow::ensure!(lines(bench, kind, "held")? == before + 1, "{kind} was not held once");
        must_hold(bench).await
    }
}

fn lines(bench: &Bench, kind: &str, replied: &str) -> anyhow::Result<usize> {
    let journal = bench.parts().journal()?;
    Ok(journal.iter().filter(|line| line["kind"] == kind && line["replied"] == replied).count())
}
