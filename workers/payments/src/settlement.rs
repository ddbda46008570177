//! Settlement: following an accepted effect until the money is where it should be. A separate operation, keyed by the
//! submission's operation id (obligation E21).

use crate::events::{PaymentFailed, PaymentSettled};
use crate::submission::{ACCOUNT, Timing};
use backline_failure::{Call, Failure, Mode, Policy};
use backline_runtime::{Conclusion, Error, KindSpec, Operation, Read, Reconcile, Record, Step};
use backline_stripe::{
    ReversalRef, Settlement as State, Stripe, payment_intent_settlement, payout_settlement,
    refund_settlement, reversal_settlement, transfer_settlement,
};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use std::time::Duration;
use uuid::Uuid;

/// The provider's object that is followed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "object", rename_all = "snake_case")]
pub(crate) enum Object {
    /// `tr_…`.
    Transfer { id: String },
    /// `po_…`.
    Payout { id: String, account: Option<String> },
    /// `pi_…`.
    PaymentIntent { id: String, account: Option<String> },
    /// `re_…`.
    Refund { id: String, account: Option<String> },
    /// `trr_…` of a transfer.
    Reversal(ReversalRef),
}

impl Object {
    /// The provider's id.
    pub(crate) fn id(&self) -> &str {
        match self {
            Self::Transfer { id }
            | Self::Payout { id, .. }
            | Self::PaymentIntent { id, .. }
            | Self::Refund { id, .. } => id,
            Self::Reversal(reversal) => &reversal.id,
        }
    }
}

/// Input: ids only.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Settle {
    /// The application's id of the payment.
    pub payment_id: String,
    /// The submission's operation.
    pub submission: Uuid,
    /// What to follow.
    pub object: Object,
}

/// Handler of `stripe.settlement`.
pub(crate) struct Settlement {
    pub stripe: Stripe,
    pub timing: Timing,
}

impl Reconcile for Settlement {
    const KIND: &'static str = "stripe.settlement";
    type Input = Settle;
    type Desired = ();
    type Output = State;

    fn spec(&self) -> KindSpec {
        KindSpec {
            financial: true,
            request_timeout: self.timing.request_timeout,
            // It only reads: nothing of an abandoned attempt can land at the provider.
            linger: Duration::ZERO,
            lookup_lag: Duration::ZERO,
            // Following never gives up by itself: the money is somewhere.
            policy: Policy { max_attempts: u32::MAX, backoff_base: self.timing.backoff, ..Policy::default() },
            ..KindSpec::new(Mode::Reconcile, ACCOUNT)
        }
    }

    async fn read(
        &self,
        _tx: &mut PgConnection,
        _operation: &Operation,
        _input: &Settle,
    ) -> Result<Read<()>, sqlx::Error> {
        // What is wanted is fixed: settled. Receipts of webhooks will be read here.
        Ok(Read::Desired(()))
    }

    async fn converge(&self, call: &Call, input: &Settle, _desired: &()) -> Result<Step<State>, Failure> {
        let stripe = &self.stripe;
        let state = match &input.object {
            Object::Transfer { id } => transfer_settlement(stripe, call, id).await?,
            Object::Payout { id, account } => payout_settlement(stripe, call, account.as_deref(), id).await?,
            Object::PaymentIntent { id, account } => {
                payment_intent_settlement(stripe, call, account.as_deref(), id).await?
            }
            Object::Refund { id, account } => refund_settlement(stripe, call, account.as_deref(), id).await?,
            Object::Reversal(reversal) => reversal_settlement(stripe, call, reversal).await?,
        };
        Ok(match state {
            State::Pending | State::NeedsAction { .. } | State::Unlisted { .. } => {
                Step::Again(self.timing.settlement_poll)
            }
            settled => Step::Done(settled),
        })
    }

    async fn record(
        &self,
        tx: &mut Record<'_>,
        input: &Settle,
        end: Conclusion<'_, State>,
    ) -> Result<(), Error> {
        let Conclusion::Succeeded(state) = end else { return Ok(()) };
        let payment_id = input.payment_id.clone();
        let provider_ref = input.object.id().to_owned();
        let reason = match state {
            State::Settled => {
                let fact = PaymentSettled { payment_id: payment_id.clone(), provider_ref };
                tx.emit("settled", "payment", &payment_id, None, &fact).await?;
                return Ok(());
            }
            State::Failed { reason } => reason.clone(),
            State::Canceled => "canceled".to_owned(),
            State::Reversed { minor } => format!("reversed {minor}"),
            // Converge never ends with these.
            State::Pending | State::NeedsAction { .. } | State::Unlisted { .. } => return Ok(()),
        };
        let fact = PaymentFailed { payment_id: payment_id.clone(), provider_ref, reason };
        tx.emit("failed", "payment", &payment_id, None, &fact).await?;
        Ok(())
    }
}
