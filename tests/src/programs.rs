//! The programs of a stack and what each is told: the one place that knows their settings.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

/// Binary of the Pub/Sub emulator.
pub const EMULATOR: &str = "backline-pubsub-emulator";
/// Binary of the provider sandbox.
pub const SANDBOX: &str = "backline-sandbox";
/// Binary of the relay.
pub const RELAY: &str = "backline-relay";

/// Binary of the payments worker.
pub const PAYMENTS: &str = "backline-payments";
/// Binary of the Twilio worker.
pub const TWILIO: &str = "backline-twilio";
/// Binary of the worker that `docs/writing-a-worker.md` builds. It is told by its tests where its receiver is.
pub const WEBHOOK: &str = "example-webhook";
/// Binary of the worker whose handlers do what a test's input says.
pub const SCRIPTED: &str = "promise-worker";

/// Project id at the emulator; any will do.
pub(crate) const PROJECT: &str = "backline-promises";
/// The credential of the provider: must appear in no log, dead letter or metric.
pub const API_KEY: &str = "sk_test_canary_of_the_promises";
/// Topic of events whose producer names none.
pub(crate) const TOPIC: &str = "domain-events";

pub(crate) type Settings = Vec<(&'static str, String)>;

/// Where the shared parts of a stack are, the same over restarts of each.
pub(crate) struct Addresses {
    pub(crate) database_url: String,
    pub(crate) emulator: SocketAddr,
    pub(crate) sandbox: SocketAddr,
    pub(crate) effects: SocketAddr,
}

pub(crate) fn local(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// The emulator keeps what it accepted over restarts, as the service does. What comes back to it waits for a second at
/// most before it goes out again, in proportion to the other timers; the subscriptions ask for up to a minute.
pub(crate) fn emulator(at: &Addresses, dir: &Path) -> Settings {
    vec![
        ("PUBSUB_EMULATOR_LISTEN", at.emulator.to_string()),
        ("PUBSUB_EMULATOR_DATA_DIR", dir.join("pubsub").display().to_string()),
        ("PUBSUB_EMULATOR_RETRY_BACKOFF_CAP", "1000".to_owned()),
    ]
}

/// The sandbox's journal outlives kills: it is the provider's own memory of what it did.
pub(crate) fn sandbox(at: &Addresses, journal: &Path) -> Settings {
    vec![("SANDBOX_LISTEN", at.sandbox.to_string()), ("SANDBOX_JOURNAL", journal.display().to_string())]
}

/// The relay with its timers compressed in proportion: a dead relay's lanes are free after four seconds.
pub(crate) fn relay(at: &Addresses, health: SocketAddr) -> Settings {
    vec![
        ("DATABASE_URL", at.database_url.clone()),
        ("PUBSUB_EMULATOR_HOST", at.emulator.to_string()),
        ("PUBSUB_PROJECT_ID", PROJECT.to_owned()),
        ("BACKLINE_RELAY_HEALTH", health.to_string()),
        ("BACKLINE_RELAY_CONNECTIONS", "6".to_owned()),
        ("BACKLINE_RELAY_PUBLISH_TIMEOUT", "2s".to_owned()),
        ("BACKLINE_RELAY_LEASE", "4s".to_owned()),
        ("BACKLINE_RELAY_COMMIT_LAG", "2s".to_owned()),
        ("BACKLINE_RELAY_UNMARKED_EVERY", "1s".to_owned()),
        ("BACKLINE_RELAY_REOFFER_EVERY", "1s".to_owned()),
        ("BACKLINE_RELAY_POLL", "100ms".to_owned()),
    ]
}

/// What every worker is told. Timers are compressed in proportion: 2.25 request timeouts < lease, linger and lookup lag in
/// hundreds of milliseconds instead of minutes, so that every recovery takes seconds. A test's own come on top.
pub(crate) fn worker(at: &Addresses, health: SocketAddr) -> Settings {
    vec![
        ("DATABASE_URL", at.database_url.clone()),
        ("PUBSUB_EMULATOR_HOST", at.emulator.to_string()),
        ("PUBSUB_PROJECT_ID", PROJECT.to_owned()),
        ("BACKLINE_HEALTH_LISTEN", health.to_string()),
        ("BACKLINE_CONNECTIONS", "6".to_owned()),
        ("BACKLINE_OPERATIONS", "40".to_owned()),
        ("BACKLINE_LEASE", "3s".to_owned()),
        ("BACKLINE_SWEEP", "200ms".to_owned()),
        ("BACKLINE_POLL", "100ms".to_owned()),
        ("BACKLINE_COMMIT_LAG", "2s".to_owned()),
        ("BACKLINE_ACQUIRE_TIMEOUT", "2s".to_owned()),
        ("BACKLINE_REOFFER_AFTER", "2s".to_owned()),
        ("BACKLINE_GRACE", "5s".to_owned()),
        ("STRIPE_BASE_URL", format!("http://{}", at.sandbox)),
        ("STRIPE_API_KEY", API_KEY.to_owned()),
        ("STRIPE_REQUEST_TIMEOUT", "1s".to_owned()),
        ("STRIPE_LINGER", "500ms".to_owned()),
        ("STRIPE_LOOKUP_LAG", "300ms".to_owned()),
        ("STRIPE_BACKOFF", "50ms".to_owned()),
        ("STRIPE_SETTLEMENT_POLL", "200ms".to_owned()),
        // The rate is a promise of its own test; elsewhere it would only make the others slow.
        ("STRIPE_RATE", "1000".to_owned()),
        ("TWILIO_BASE_URL", format!("http://{}", at.sandbox)),
        // The stand-in's account; keys of the right shape are accepted.
        ("TWILIO_ACCOUNT_SID", "ACba5e000000000000000000000000ba5e".to_owned()),
        ("TWILIO_API_KEY", "SK000000000000000000000000000000aa".to_owned()),
        ("TWILIO_API_SECRET", API_KEY.to_owned()),
        ("TWILIO_REQUEST_TIMEOUT", "1s".to_owned()),
        ("TWILIO_LINGER", "500ms".to_owned()),
        ("TWILIO_LOOKUP_LAG", "300ms".to_owned()),
        ("TWILIO_BACKOFF", "50ms".to_owned()),
        ("TWILIO_RATE", "1000".to_owned()),
        ("PROMISE_PROVIDER", at.effects.to_string()),
    ]
}
