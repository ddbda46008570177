//! Metrics agree with SQL.

use crate::{EMULATOR, Member, SANDBOX, Stack, http};
use serde_json::Value;

/// The metrics page of a relay or worker that is running.
pub(super) fn page(name: &str, member: &Member) -> Option<String> {
    if name == EMULATOR || name == SANDBOX {
        return None;
    }
    http::must(member.address().ok()?, "GET", "/metrics", &Value::Null).ok()
}

/// Sum over all label sets of one metric on one page.
#[must_use]
pub(crate) fn sum(page: &str, metric: &str) -> f64 {
    let named = |line: &&str| {
        line.strip_prefix(metric).is_some_and(|rest| rest.starts_with('{') || rest.starts_with(' '))
    };
    page.lines().filter(named).filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

/// Repetitions and refusals that leave no row: seen by processes that are still alive.
pub(super) fn recoveries(stack: &Stack) -> anyhow::Result<i64> {
    const COUNTED: [&str; 6] = [
        "backline_tx_retries_total",
        "backline_deliveries_repeated_total",
        "backline_outbox_republished_total",
        "backline_leases_lost_total",
        "backline_relay_outages_total",
        "backline_subscription_reconnects_total",
    ];
    let pages = stack.members().filter_map(|(name, member)| page(name, member));
    let total: f64 = pages.map(|page| COUNTED.iter().map(|metric| sum(&page, metric)).sum::<f64>()).sum();
    #[expect(clippy::cast_possible_truncation, reason = "a counter of one test")]
    Ok(total as i64)
}

pub(super) async fn check(stack: &Stack) -> anyhow::Result<Vec<String>> {
    let mut violations = Vec::new();
    let agreed = [
        (
            "backline_operations_open",
            "select coalesce(sum(operations), 0)::bigint from backline.v_open_operations",
        ),
        ("backline_parked_entries", "select coalesce(sum(entries), 0)::bigint from backline.v_parked"),
        (
            "backline_outbox_unpublished_entries",
            "select coalesce(sum(entries), 0)::bigint from backline.v_unpublished",
        ),
        (
            "backline_leases_expired_operations",
            "select coalesce(sum(operations), 0)::bigint from backline.v_expired_leases",
        ),
    ];
    for (name, member) in stack.members() {
        let Some(page) =
            page(name, member).filter(|page| page.contains("backline_leases_expired_operations "))
        else {
            continue;
        };
        for (metric, sql) in agreed {
            let truth = stack.count(sql).await?;
            #[expect(clippy::cast_possible_truncation, reason = "counts of one test")]
            let shown = sum(&page, metric) as i64;
            if shown != truth {
                violations.push(format!("27 {name}: {metric} is {shown}, SQL says {truth}"));
            }
        }
    }
    Ok(violations)
}
