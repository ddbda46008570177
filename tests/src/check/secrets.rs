//! Secrets and payloads reach no log line, no dead letter and no metric.

use crate::{Stack, programs};

/// Text that tests plant in payloads and inputs: personal data stands in for it in production.
pub const CANARY: &str = "canary-of-the-payload";

pub(super) async fn check(stack: &Stack) -> anyhow::Result<Vec<String>> {
    let mut violations = Vec::new();
    for (name, member) in stack.members() {
        let log = member.log()?;
        for secret in [CANARY, programs::API_KEY] {
            if let Some(line) = log.lines().find(|line| line.contains(secret)) {
                violations.push(format!("24 {name} logged a secret: {line}"));
            }
        }
        if let Some(page) = super::metrics::page(name, member)
            && page.contains(CANARY)
        {
            violations.push(format!("24 metrics of {name} carry payload"));
        }
    }
    let sql = "select count(*) from (select failure_detail as t from backline.operation union all select detail from backline.operation_history
        union all select detail from backline.attempt_evidence union all select evidence::text from backline.attempt_evidence
        union all select parked_reason from backline.outbox union all select reason from backline.parked_delivery) t
        where t.t like '%canary-of-the-payload%' or t.t like '%sk_test_canary%'";
    let leaked = stack.count(sql).await?;
    if leaked > 0 {
        violations.push(format!("24 {leaked} failure texts carry secrets or payload"));
    }
    Ok(violations)
}
