//! Transfers from the platform's balance to connected accounts.

use crate::settlement::Object;
use crate::submission::{Submission, Timing, record, spec};
use backline_failure::{Call, Failure, Resolution};
use backline_runtime::{Command, Conclusion, Error, Evidence, KindSpec, Operation, Record};
use backline_stripe::{Stripe, TransferInstruction, TransferRef, create_transfer, find_transfer};

/// Handler of `stripe.transfer`.
pub(crate) struct Transfer {
    pub stripe: Stripe,
    pub timing: Timing,
}

impl Command for Transfer {
    const KIND: &'static str = "stripe.transfer";
    const GUARDS: bool = false;
    type Input = Submission<TransferInstruction>;
    type Output = TransferRef;

    fn spec(&self) -> KindSpec {
        spec(&self.timing)
    }

    async fn perform(&self, call: &Call, input: &Self::Input) -> Result<TransferRef, Failure> {
        create_transfer(&self.stripe, call, &input.instruction).await
    }

    async fn resolve(
        &self,
        call: &Call,
        _operation: &Operation,
        input: &Self::Input,
        _evidence: &[Evidence],
    ) -> Result<Resolution<TransferRef>, Failure> {
        find_transfer(&self.stripe, call, &input.instruction).await
    }

    async fn record(
        &self,
        tx: &mut Record<'_>,
        input: &Self::Input,
        end: Conclusion<'_, TransferRef>,
    ) -> Result<(), Error> {
        record::<Self, _, _>(tx, input, end, |done| Object::Transfer { id: done.id.clone() }).await
    }
}
