//! What every kind shares: the account, the limits, the one serial key of a conversation, and when absence is believed.

use backline_failure::{Failure, Mode, Policy};
use backline_runtime::{Capacity, Error, KindSpec, Record, Step, refuse_zero};
use backline_twilio::{ConversationSid, LINGER, LOOKUP_LAG};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use uuid::Uuid;

/// Provider account of everything about conversations.
pub(crate) const ACCOUNT: &str = "twilio:conversations";

/// One serial key for all kinds: no two requests about a conversation overlap, whatever they are for.
pub(crate) fn serial_key(conversation: Uuid) -> String {
    format!("twilio:conversation:{conversation}")
}

/// For how many lookup lags a conversation that Twilio does not show is taken for new (field case 85). Lags are guesses
/// at seconds, so ten are minutes; after them somebody else deleted it, and only a person knows why.
const NEW_FOR_LAGS: u32 = 10;

/// Input: ids only.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct About {
    /// The application's conversation; also its unique name at Twilio.
    pub conversation: Uuid,
}

/// Time limits of Twilio calls; the defaults are the provider's, drills compress them.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Timing {
    /// Bound of one Twilio call.
    #[arg(long, env = "TWILIO_REQUEST_TIMEOUT", default_value = "10s", value_parser = humantime::parse_duration)]
    pub request_timeout: Duration,
    /// How late an abandoned request may still apply; default from the provider module.
    #[arg(long, env = "TWILIO_LINGER", value_parser = humantime::parse_duration)]
    pub linger: Option<Duration>,
    /// How long a read may not show a write; default from the provider module.
    #[arg(long, env = "TWILIO_LOOKUP_LAG", value_parser = humantime::parse_duration)]
    pub lookup_lag: Option<Duration>,
    /// First retry's delay.
    #[arg(long, env = "TWILIO_BACKOFF", default_value = "1s", value_parser = humantime::parse_duration)]
    pub backoff: Duration,
}

impl Timing {
    /// Checks the times against each other and the lease.
    ///
    /// # Errors
    /// The first that cannot work, by its name.
    pub(crate) fn check(&self, capacity: &Capacity) -> Result<(), Error> {
        refuse_zero(&[
            ("TWILIO_LINGER", self.linger.unwrap_or(LINGER)),
            ("TWILIO_LOOKUP_LAG", self.lookup_lag()),
            ("TWILIO_BACKOFF", self.backoff),
        ])?;
        capacity.check_request("TWILIO_REQUEST_TIMEOUT", self.request_timeout)
    }

    /// How long a read may not show a write.
    pub(crate) fn lookup_lag(&self) -> Duration {
        self.lookup_lag.unwrap_or(LOOKUP_LAG)
    }

    /// Limits of every kind.
    pub(crate) fn spec(&self, mode: Mode) -> KindSpec {
        KindSpec {
            linger: self.linger.unwrap_or(LINGER),
            lookup_lag: self.lookup_lag(),
            request_timeout: self.request_timeout,
            policy: Policy { backoff_base: self.backoff, ..Policy::default() },
            ..KindSpec::new(mode, ACCOUNT)
        }
    }

    /// How much of the lag is left after something that long ago: until then a read may show what was before it.
    pub(crate) fn unsettled(&self, age: Option<Duration>) -> Option<Duration> {
        self.lookup_lag().checked_sub(age?).filter(|rest| !rest.is_zero())
    }

    /// A conversation that should be there, is not shown, and got its SID this long ago. It is never a success.
    pub(crate) fn missing<T>(&self, age: Option<Duration>) -> Result<Step<T>, Failure> {
        let lag = self.lookup_lag();
        if age.is_some_and(|age| age < lag.saturating_mul(NEW_FOR_LAGS)) {
            return Err(Failure::transient("twilio.conversation_invisible").with_retry_after(lag));
        }
        Ok(Step::Person(Failure::rejected("twilio.conversation_missing")))
    }
}

/// An age from the database, in seconds; a clock that went back makes none.
pub(crate) fn age(seconds: Option<f64>) -> Option<Duration> {
    seconds.map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

/// A SID from the database.
pub(crate) fn sid_of(text: &str) -> Result<ConversationSid, sqlx::Error> {
    text.parse().map_err(|error| sqlx::Error::Decode(Box::new(error)))
}

/// Twilio has closed a conversation that is active here. Nothing reopens it; a person decides.
pub(crate) fn closed_by_others<T>() -> Step<T> {
    Step::Person(Failure::rejected("twilio.conversation_closed"))
}

/// Shows in the application's row what only a person can decide, whether or not the operation has ended with it.
pub(crate) async fn attention(record: &mut Record<'_>, conversation: Uuid, code: &str) -> Result<(), Error> {
    let sql = include_str!("../sql/attention.sql");
    sqlx::query(sql).bind(conversation).bind(code).execute(record.connection()).await?;
    Ok(())
}
