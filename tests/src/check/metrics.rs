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
    values(page, metric).sum()
}

/// The largest of all label sets, or 0.
fn largest(page: &str, metric: &str) -> f64 {
    values(page, metric).fold(0.0, f64::max)
}

fn values(page: &str, metric: &str) -> impl Iterator<Item = f64> {
    let named = move |line: &&str| {
        line.strip_prefix(metric).is_some_and(|rest| rest.starts_with('{') || rest.starts_with(' '))
    };
    page.lines().filter(named).filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
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

/// Age of the oldest event that waits for the broker, on pages of relays and workers.
const OLDEST: &str = "backline_outbox_oldest_unpublished_seconds";

/// Between a page and the question whether it is right, in seconds, on a busy machine.
const MOMENT: f64 = 5.0;

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
    let relayed =
        [("backline_outbox_parked", "select count(*) from backline.outbox where parked_at is not null")];
    for (name, member) in stack.members() {
        let Some(page) = page(name, member) else { continue };
        let agreed: &[(&str, &'static str)] = match () {
            () if page.contains("backline_leases_expired_operations ") => &agreed,
            () if page.contains("backline_outbox_parked ") => &relayed,
            () => continue,
        };
        for (metric, sql) in agreed.iter().copied() {
            let truth = stack.count(sql).await?;
            #[expect(clippy::cast_possible_truncation, reason = "counts of one test")]
            let shown = sum(&page, metric) as i64;
            if shown != truth {
                violations.push(format!("27 {name}: {metric} is {shown}, SQL says {truth}"));
            }
        }
        let shown = largest(&page, OLDEST);
        let sql = "select coalesce(max(oldest_seconds), 0)::float8 from backline.v_unpublished";
        let truth: f64 = sqlx::query_scalar(sql).fetch_one(stack.pool()).await?;
        // Asked a moment after the page was made.
        if (shown > 0.0) != (truth > 0.0) || truth - shown > MOMENT {
            violations.push(format!("27 {name}: {OLDEST} is {shown}, SQL says {truth}"));
        }
    }
    Ok(violations)
}
