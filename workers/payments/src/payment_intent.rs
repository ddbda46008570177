//! Payments from customers.

use crate::settlement::Object;
use crate::submission::{Submission, Timing, created_window, record, spec};
use backline_failure::{Call, Failure, Resolution};
use backline_runtime::{Command, Conclusion, Error, Evidence, KindSpec, Operation, Record};
use backline_stripe::{
    PaymentIntentInstruction, PaymentIntentRef, Stripe, create_payment_intent, find_payment_intent,
};

/// Handler of `stripe.payment_intent`.
pub(crate) struct PaymentIntent {
    pub stripe: Stripe,
    pub timing: Timing,
}

impl Command for PaymentIntent {
    const KIND: &'static str = "stripe.payment_intent";
    const GUARDS: bool = false;
    type Input = Submission<PaymentIntentInstruction>;
    type Output = PaymentIntentRef;

    fn spec(&self) -> KindSpec {
        spec(&self.timing)
    }

    async fn perform(&self, call: &Call, input: &Self::Input) -> Result<PaymentIntentRef, Failure> {
        create_payment_intent(&self.stripe, call, &input.instruction).await
    }

    async fn resolve(
        &self,
        call: &Call,
        operation: &Operation,
        input: &Self::Input,
        _evidence: &[Evidence],
    ) -> Result<Resolution<PaymentIntentRef>, Failure> {
        find_payment_intent(&self.stripe, call, &input.instruction, created_window(operation)).await
    }

    async fn record(
        &self,
        tx: &mut Record<'_>,
        input: &Self::Input,
        end: Conclusion<'_, PaymentIntentRef>,
    ) -> Result<(), Error> {
        record::<Self, _, _>(tx, input, end, |done| Object::PaymentIntent {
            id: done.id.clone(),
            account: input.instruction.account.clone(),
        })
        .await
    }
}
