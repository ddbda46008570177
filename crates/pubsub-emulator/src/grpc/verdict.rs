//! Results of acknowledgements on exactly-once subscriptions, as unary errors and as stream confirmations:
//! <https://cloud.google.com/pubsub/docs/exactly-once-delivery>.

use crate::broker::{AckReport, Subscription};
use googleapis_tonic_google_pubsub_v1::google::pubsub::v1::streaming_pull_response::{
    AcknowledgeConfirmation, ModifyAckDeadlineConfirmation,
};
use std::collections::HashMap;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

const STALE: &str = "PERMANENT_FAILURE_INVALID_ACK_ID";
const UNORDERED: &str = "TRANSIENT_FAILURE_UNORDERED_ACK_ID";

/// The unary answer: ids named in the error's metadata failed, the others succeeded.
pub(super) fn of(subscription: &Subscription, report: &AckReport) -> Result<(), Status> {
    if !subscription.config().enable_exactly_once_delivery
        || (report.stale.is_empty() && report.unordered.is_empty())
    {
        return Ok(());
    }
    let failed = report.stale.iter().map(|id| (id.clone(), STALE.to_owned()));
    let unordered = report.unordered.iter().map(|id| (id.clone(), UNORDERED.to_owned()));
    let metadata: HashMap<String, String> = failed.chain(unordered).collect();
    let details =
        ErrorDetails::with_error_info("EXACTLY_ONCE_ACKID_FAILURE", "pubsub.googleapis.com", metadata);
    // Google's Rust client takes ids that are not named as done; its Python client fails them, unless the
    // code is a passing one, when it asks again and learns that they are done.
    let some_passed = !(report.done.is_empty() && report.unordered.is_empty());
    Err(Status::with_error_details(
        if some_passed { Code::Aborted } else { Code::FailedPrecondition },
        "some acknowledgement ids in the request were invalid; see the error's metadata",
        details,
    ))
}

/// The stream's confirmation of acknowledgements.
pub(super) fn acknowledged(report: AckReport) -> AcknowledgeConfirmation {
    AcknowledgeConfirmation {
        ack_ids: report.done,
        invalid_ack_ids: report.stale,
        unordered_ack_ids: report.unordered,
        temporary_failed_ack_ids: Vec::new(),
    }
}

/// The stream's confirmation of deadline changes.
pub(super) fn deadlines(report: AckReport) -> ModifyAckDeadlineConfirmation {
    ModifyAckDeadlineConfirmation {
        ack_ids: report.done,
        invalid_ack_ids: report.stale,
        temporary_failed_ack_ids: Vec::new(),
    }
}
