//! What the relay's metrics mean.

use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};

/// Describes every metric of the relay to the installed recorder.
pub fn describe_metrics() {
    describe_counter!(
        "backline_outbox_published_total",
        "Entries the broker confirmed and the outbox recorded."
    );
    describe_counter!(
        "backline_outbox_republished_total",
        "Entries that go out again, same id and bytes: confirmation not recorded, lane lost, or not sealed in time."
    );
    describe_counter!("backline_outbox_parked_total", "Entries set aside, by reason.");
    describe_gauge!("backline_outbox_parked", "Entries that are set aside now.");
    describe_gauge!(
        "backline_outbox_oldest_unpublished_seconds",
        Unit::Seconds,
        "Age of the oldest entry that waits, by the database's clock."
    );
    describe_counter!(
        "backline_relay_lane_lease_lost_total",
        "Lanes that another relay took while they were held."
    );
    describe_counter!(
        "backline_metrics_view_failures_total",
        "Scrapes whose gauges are old, because the outbox could not be asked."
    );
    describe_counter!("backline_relay_lane_panics_total", "Lane tasks that ended abnormally.");
    describe_counter!(
        "backline_relay_sweep_panics_total",
        "Sweeps that ended abnormally and were started again."
    );
    describe_counter!(
        "backline_relay_outages_total",
        "Publish requests that failed without blame on an entry."
    );
    describe_histogram!("backline_relay_publish_seconds", Unit::Seconds, "Time of one batch at the broker.");
    describe_histogram!(
        "backline_tx_seconds",
        Unit::Seconds,
        "Time of one transaction, repetitions included."
    );
    describe_counter!("backline_tx_retries_total", "Repetitions of whole transactions.");
    describe_counter!("backline_doorbell_replaced_total", "Listening connections that were lost.");
}
