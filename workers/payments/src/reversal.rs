//! Reversals of transfers: new governed operations.

use crate::settlement::Object;
use crate::submission::{Submission, Timing, record, spec};
use backline_failure::{Call, Failure, Resolution};
use backline_runtime::{Command, Conclusion, Error, Evidence, KindSpec, Operation, Record};
use backline_stripe::{ReversalInstruction, ReversalRef, Stripe, create_reversal, find_reversal};

/// Handler of `stripe.reversal`.
pub(crate) struct Reversal {
    pub stripe: Stripe,
    pub timing: Timing,
}

impl Command for Reversal {
    const KIND: &'static str = "stripe.reversal";
    const GUARDS: bool = false;
    type Input = Submission<ReversalInstruction>;
    type Output = ReversalRef;

    fn spec(&self) -> KindSpec {
        spec(&self.timing)
    }

    async fn perform(&self, call: &Call, input: &Self::Input) -> Result<ReversalRef, Failure> {
        create_reversal(&self.stripe, call, &input.instruction).await
    }

    async fn resolve(
        &self,
        call: &Call,
        _operation: &Operation,
        input: &Self::Input,
        _evidence: &[Evidence],
    ) -> Result<Resolution<ReversalRef>, Failure> {
        find_reversal(&self.stripe, call, &input.instruction).await
    }

    async fn record(
        &self,
        tx: &mut Record<'_>,
        input: &Self::Input,
        end: Conclusion<'_, ReversalRef>,
    ) -> Result<(), Error> {
        record::<Self, _, _>(tx, input, end, |done| Object::Reversal(done.clone())).await
    }
}
