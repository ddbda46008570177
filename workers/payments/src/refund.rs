//! Refunds to customers.

use crate::settlement::Object;
use crate::submission::{Submission, Timing, record, spec};
use backline_failure::{Call, Failure, Resolution};
use backline_runtime::{Command, Conclusion, Error, Evidence, KindSpec, Operation, Record};
use backline_stripe::{RefundInstruction, RefundRef, Stripe, create_refund, find_refund};

/// Handler of `stripe.refund`.
pub(crate) struct Refund {
    pub stripe: Stripe,
    pub timing: Timing,
}

impl Command for Refund {
    const KIND: &'static str = "stripe.refund";
    const GUARDS: bool = false;
    type Input = Submission<RefundInstruction>;
    type Output = RefundRef;

    fn spec(&self) -> KindSpec {
        spec(&self.timing)
    }

    async fn perform(&self, call: &Call, input: &Self::Input) -> Result<RefundRef, Failure> {
        create_refund(&self.stripe, call, &input.instruction).await
    }

    async fn resolve(
        &self,
        call: &Call,
        _operation: &Operation,
        input: &Self::Input,
        _evidence: &[Evidence],
    ) -> Result<Resolution<RefundRef>, Failure> {
        find_refund(&self.stripe, call, &input.instruction).await
    }

    async fn record(
        &self,
        tx: &mut Record<'_>,
        input: &Self::Input,
        end: Conclusion<'_, RefundRef>,
    ) -> Result<(), Error> {
        record::<Self, _, _>(tx, input, end, |done| Object::Refund {
            id: done.id.clone(),
            account: input.instruction.account.clone(),
        })
        .await
    }
}
