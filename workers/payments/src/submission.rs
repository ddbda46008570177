//! What every kind of submission shares: its frozen input, its limits, and what is recorded when it ends.

use crate::events::{PaymentRejected, PaymentSubmitted};
use crate::settlement::{Object, Settle, Settlement};
use backline_failure::{Mode, Policy};
use backline_runtime::{
    Capacity, Command, Conclusion, Error, KindSpec, Operation, Reconcile, Record, refuse_zero,
};
use backline_stripe::{CreatedWindow, IDEMPOTENCY_WINDOW, LINGER, LOOKUP_LAG};
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime};

/// Provider account of the platform's own Stripe account.
pub(crate) const ACCOUNT: &str = "stripe:platform";

/// Frozen input of a submission.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Submission<I> {
    /// The application's id of the payment.
    pub payment_id: String,
    /// Who or what authorized it.
    pub authorization: String,
    /// What to do, pinned.
    pub instruction: I,
}

/// Time limits of Stripe calls; the defaults are the provider's, drills compress them.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Timing {
    /// Bound of one Stripe call.
    #[arg(long, env = "STRIPE_REQUEST_TIMEOUT", default_value = "10s", value_parser = humantime::parse_duration)]
    pub request_timeout: Duration,
    /// How late an abandoned request may still apply; default from the provider module.
    #[arg(long, env = "STRIPE_LINGER", value_parser = humantime::parse_duration)]
    pub linger: Option<Duration>,
    /// How long an applied effect may be invisible to a list; default from the provider module.
    #[arg(long, env = "STRIPE_LOOKUP_LAG", value_parser = humantime::parse_duration)]
    pub lookup_lag: Option<Duration>,
    /// First retry's delay.
    #[arg(long, env = "STRIPE_BACKOFF", default_value = "1s", value_parser = humantime::parse_duration)]
    pub backoff: Duration,
    /// Between two looks at a payment that has not settled.
    #[arg(long, env = "STRIPE_SETTLEMENT_POLL", default_value = "5min", value_parser = humantime::parse_duration)]
    pub settlement_poll: Duration,
}

impl Timing {
    /// Checks the times against each other and the lease.
    ///
    /// # Errors
    /// The first that cannot work, by its name.
    pub(crate) fn check(&self, capacity: &Capacity) -> Result<(), Error> {
        refuse_zero(&[
            ("STRIPE_LINGER", self.linger.unwrap_or(LINGER)),
            ("STRIPE_LOOKUP_LAG", self.lookup_lag.unwrap_or(LOOKUP_LAG)),
            ("STRIPE_BACKOFF", self.backoff),
            ("STRIPE_SETTLEMENT_POLL", self.settlement_poll),
        ])?;
        capacity.check_request("STRIPE_REQUEST_TIMEOUT", self.request_timeout)
    }
}

/// Limits of every submission.
pub(crate) fn spec(timing: &Timing) -> KindSpec {
    KindSpec {
        financial: true,
        irreversible: true,
        linger: timing.linger.unwrap_or(LINGER),
        lookup_lag: timing.lookup_lag.unwrap_or(LOOKUP_LAG),
        request_timeout: timing.request_timeout,
        policy: Policy { backoff_base: timing.backoff, ..Policy::default() },
        ..KindSpec::new(Mode::Command, ACCOUNT).with_native_idempotency(IDEMPOTENCY_WINDOW)
    }
}

/// Between which times the provider may have created the effect, by the database's clock.
pub(crate) fn created_window(operation: &Operation) -> CreatedWindow {
    let first = operation.first_submitted_at.unwrap_or(operation.accepted_at);
    CreatedWindow::new(SystemTime::from(first), SystemTime::from(operation.claimed_at))
}

/// Records a submission's end: the fact for the application, and the settlement that is now owed.
pub(crate) async fn record<H, I, O>(
    record: &mut Record<'_>,
    input: &Submission<I>,
    conclusion: Conclusion<'_, O>,
    object: impl FnOnce(&O) -> Object,
) -> Result<(), Error>
where
    H: Command,
{
    let payment_id = input.payment_id.clone();
    match conclusion {
        Conclusion::Succeeded(output) => {
            let object = object(output);
            let fact = PaymentSubmitted {
                payment_id: payment_id.clone(),
                kind: H::KIND.to_owned(),
                provider_ref: object.id().to_owned(),
            };
            record.emit("submitted", "payment", &payment_id, None, &fact).await?;
            let submission = record.operation().id;
            let settle = Settle { payment_id, submission, object };
            record.owe(Settlement::owed(submission, &settle)).await?;
        }
        Conclusion::Rejected { code, .. } | Conclusion::Obsolete { rule: code } => {
            let fact = PaymentRejected {
                payment_id: payment_id.clone(),
                kind: H::KIND.to_owned(),
                code: code.to_owned(),
            };
            record.emit("rejected", "payment", &payment_id, None, &fact).await?;
        }
    }
    Ok(())
}
