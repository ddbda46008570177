//! Gauges read from the SQL views at every scrape: they agree with SQL because they are SQL.

use metrics::Label;
use sqlx::PgPool;
use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// Series that a scrape has shown: a view without their row means zero, not the last value.
static SHOWN: Mutex<Option<HashSet<Series>>> = Mutex::new(None);

type Series = (&'static str, Vec<Label>);

/// Sets what a view says and remembers that it was said.
fn show(fresh: &mut HashSet<Series>, name: &'static str, labels: Vec<Label>, value: f64) {
    metrics::gauge!(name, labels.iter()).set(value);
    fresh.insert((name, labels));
}

/// Zeroes every series that an earlier scrape showed and this one did not.
fn forget_others(fresh: HashSet<Series>) {
    let mut shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
    for (name, labels) in shown.replace(fresh.clone()).unwrap_or_default().difference(&fresh) {
        metrics::gauge!(*name, labels.iter()).set(0.0);
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of rows are far below 2^52")]
pub(crate) async fn gauges(pool: &PgPool) -> Result<(), sqlx::Error> {
    let mut fresh = HashSet::new();
    for row in sqlx::query_file!("sql/gauge_unpublished.sql").fetch_all(pool).await? {
        let labels = vec![Label::new("topic", row.topic)];
        show(&mut fresh, "backline_outbox_unpublished_entries", labels.clone(), row.entries as f64);
        show(&mut fresh, "backline_outbox_oldest_unpublished_seconds", labels, row.oldest_seconds);
    }
    for row in sqlx::query_file!("sql/gauge_open.sql").fetch_all(pool).await? {
        let labels = vec![
            Label::new("workload", row.workload),
            Label::new("provider", row.provider_account),
            Label::new("kind", row.kind),
            Label::new("state", row.state),
            Label::new("class", row.failure_class),
        ];
        show(&mut fresh, "backline_operations_open", labels.clone(), row.operations as f64);
        show(&mut fresh, "backline_operations_oldest_seconds", labels, row.oldest_seconds);
    }
    for row in sqlx::query_file!("sql/gauge_parked.sql").fetch_all(pool).await? {
        let labels = vec![Label::new("source", row.source), Label::new("name", row.name)];
        show(&mut fresh, "backline_parked_entries", labels.clone(), row.entries as f64);
        show(&mut fresh, "backline_parked_oldest_seconds", labels, row.oldest_seconds);
    }
    forget_others(fresh);
    let leases = sqlx::query_file!("sql/gauge_leases.sql").fetch_one(pool).await?;
    metrics::gauge!("backline_leases_expired_operations").set(leases.operations as f64);
    metrics::gauge!("backline_oldest_snapshot_seconds").set(leases.snapshot_seconds);
    Ok(())
}
