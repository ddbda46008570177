//! Whether Pub/Sub answers at all: TCP only, because credentials are the processes' own.

use super::check::Check;
use std::time::Duration;
use tokio::net::TcpStream;

const LIMIT: Duration = Duration::from_secs(5);
/// <https://cloud.google.com/pubsub/docs/reference/service_apis_overview>
const SERVICE: &str = "pubsub.googleapis.com:443";

pub(super) async fn reachable(emulator: Option<&str>, project: Option<&str>) -> Check {
    let address = match (emulator, project) {
        (Some(host), _) => host,
        (None, Some(_)) => SERVICE,
        (None, None) => {
            return Check::ok(
                "pubsub",
                "not checked: neither PUBSUB_EMULATOR_HOST nor PUBSUB_PROJECT_ID is set",
            );
        }
    };
    let advice = "see that the network lets this machine reach it; entries wait in the outbox meanwhile";
    match tokio::time::timeout(LIMIT, TcpStream::connect(address)).await {
        Ok(Ok(_)) => Check::ok("pubsub", format!("{address} accepts connections")),
        Ok(Err(error)) => Check::fail("pubsub", format!("{address}: {error}"), advice),
        Err(_) => Check::fail("pubsub", format!("{address}: no answer within 5s"), advice),
    }
}
