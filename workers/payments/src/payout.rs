//! Payouts to bank accounts.

use crate::settlement::Object;
use crate::submission::{Submission, Timing, created_window, record, spec};
use backline_failure::{Call, Failure, Resolution};
use backline_runtime::{Command, Conclusion, Error, Evidence, KindSpec, Operation, Record};
use backline_stripe::{PayoutInstruction, PayoutRef, Stripe, create_payout, find_payout};

/// Handler of `stripe.payout`.
pub(crate) struct Payout {
    pub stripe: Stripe,
    pub timing: Timing,
}

impl Command for Payout {
    const KIND: &'static str = "stripe.payout";
    const GUARDS: bool = false;
    type Input = Submission<PayoutInstruction>;
    type Output = PayoutRef;

    fn spec(&self) -> KindSpec {
        spec(&self.timing)
    }

    async fn perform(&self, call: &Call, input: &Self::Input) -> Result<PayoutRef, Failure> {
        create_payout(&self.stripe, call, &input.instruction).await
    }

    async fn resolve(
        &self,
        call: &Call,
        operation: &Operation,
        input: &Self::Input,
        _evidence: &[Evidence],
    ) -> Result<Resolution<PayoutRef>, Failure> {
        find_payout(&self.stripe, call, &input.instruction, created_window(operation)).await
    }

    async fn record(
        &self,
        tx: &mut Record<'_>,
        input: &Self::Input,
        end: Conclusion<'_, PayoutRef>,
    ) -> Result<(), Error> {
        record::<Self, _, _>(tx, input, end, |done| Object::Payout {
            id: done.id.clone(),
            account: input.instruction.account.clone(),
        })
        .await
    }
}
