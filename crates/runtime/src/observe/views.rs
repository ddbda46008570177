//! Gauges read from the SQL views at every scrape: they agree with SQL because they are SQL.

use sqlx::PgPool;

#[expect(clippy::cast_precision_loss, reason = "counts of rows are far below 2^52")]
pub(crate) async fn gauges(pool: &PgPool) -> Result<(), sqlx::Error> {
    for row in sqlx::query_file!("sql/gauge_unpublished.sql").fetch_all(pool).await? {
        metrics::gauge!("backline_outbox_unpublished_entries", "topic" => row.topic.clone())
            .set(row.entries as f64);
        metrics::gauge!("backline_outbox_oldest_unpublished_seconds", "topic" => row.topic)
            .set(row.oldest_seconds);
    }
    for row in sqlx::query_file!("sql/gauge_open.sql").fetch_all(pool).await? {
        let labels = [
            ("workload", row.workload),
            ("provider", row.provider_account),
            ("kind", row.kind),
            ("state", row.state),
            ("class", row.failure_class),
        ];
        metrics::gauge!("backline_operations_open", &labels).set(row.operations as f64);
        metrics::gauge!("backline_operations_oldest_seconds", &labels).set(row.oldest_seconds);
    }
    for row in sqlx::query_file!("sql/gauge_parked.sql").fetch_all(pool).await? {
        let labels = [("source", row.source), ("name", row.name)];
        metrics::gauge!("backline_parked_entries", &labels).set(row.entries as f64);
        metrics::gauge!("backline_parked_oldest_seconds", &labels).set(row.oldest_seconds);
    }
    let leases = sqlx::query_file!("sql/gauge_leases.sql").fetch_one(pool).await?;
    metrics::gauge!("backline_leases_expired_operations").set(leases.operations as f64);
    metrics::gauge!("backline_oldest_snapshot_seconds").set(leases.snapshot_seconds);
    Ok(())
}
