//! The programs of a stack and what each is told: the one place that knows their settings.

use std::path::Path;

/// Binary of the Pub/Sub emulator.
pub const EMULATOR: &str = "backline-pubsub-emulator";
/// Binary of the provider sandbox.
pub const SANDBOX: &str = "backline-sandbox";
/// Binary of the relay.
pub const RELAY: &str = "backline-relay";

/// Project id at the emulator; any will do.
const PROJECT: &str = "backline-test";

type Settings = Vec<(&'static str, String)>;

/// The emulator keeps its address over restarts, and what it accepted: a broker loses nothing when it is restarted.
pub(crate) fn emulator(port: u16, dir: &Path) -> Settings {
    vec![
        ("PUBSUB_EMULATOR_LISTEN", format!("127.0.0.1:{port}")),
        ("PUBSUB_EMULATOR_DATA_DIR", dir.join("pubsub").display().to_string()),
    ]
}

/// The sandbox's journal outlives kills: it is the provider's own memory of what it did.
pub(crate) fn sandbox(port: u16, journal: &Path) -> Settings {
    vec![
        ("BACKLINE_SANDBOX_LISTEN", format!("127.0.0.1:{port}")),
        ("BACKLINE_SANDBOX_JOURNAL", journal.display().to_string()),
    ]
}

/// What relay and workers share. Each listens for health on a port that the kernel picks.
pub(crate) fn workload(database_url: &str, emulator_port: u16, sandbox_port: u16) -> Settings {
    vec![
        ("DATABASE_URL", database_url.to_owned()),
        ("PUBSUB_EMULATOR_HOST", format!("127.0.0.1:{emulator_port}")),
        ("PUBSUB_PROJECT_ID", PROJECT.to_owned()),
        ("STRIPE_API_BASE", format!("http://127.0.0.1:{sandbox_port}")),
        ("STRIPE_SECRET_KEY", "sk_test_promises".to_owned()),
        ("BACKLINE_HEALTH_LISTEN", "127.0.0.1:0".to_owned()),
    ]
}
