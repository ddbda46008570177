//! From authorized payments to operations.

use crate::events::{Instruction, PaymentAuthorized, RefundAuthorized, ReversalAuthorized};
use crate::submission::Submission;
use crate::{payment_intent, payout, refund, reversal, transfer};
use backline_envelope::{DecodeError, Envelope, Event, decode};
use backline_runtime::{Command, Consumer, Intent};
use serde::Serialize;

/// Reads authorizations.
pub(crate) struct Payments;

impl Consumer for Payments {
    const NAME: &'static str = "payments";
    const EVENTS: &'static [&'static str] =
        &[PaymentAuthorized::TYPE, RefundAuthorized::TYPE, ReversalAuthorized::TYPE];

    fn intents(&self, event: &Envelope) -> Result<Vec<Intent>, DecodeError> {
        let intent = match event.event_type.as_str() {
            PaymentAuthorized::TYPE => {
                let payment: PaymentAuthorized = decode(event)?;
                let (id, authorization) = (payment.payment_id, payment.authorization);
                match payment.instruction {
                    Instruction::Transfer(i) => {
                        run::<transfer::Transfer, _>(event, id.clone(), id, authorization, i)
                    }
                    Instruction::Payout(i) => {
                        run::<payout::Payout, _>(event, id.clone(), id, authorization, i)
                    }
                    Instruction::PaymentIntent(i) => {
                        run::<payment_intent::PaymentIntent, _>(event, id.clone(), id, authorization, i)
                    }
                }
            }
            RefundAuthorized::TYPE => {
                let r: RefundAuthorized = decode(event)?;
                run::<refund::Refund, _>(event, r.refund_id, r.payment_id, r.authorization, r.instruction)
            }
            _ => {
                let r: ReversalAuthorized = decode(event)?;
                run::<reversal::Reversal, _>(
                    event,
                    r.reversal_id,
                    r.payment_id,
                    r.authorization,
                    r.instruction,
                )
            }
        }?;
        Ok(vec![intent])
    }
}

fn run<H, I>(
    event: &Envelope,
    key: String,
    payment_id: String,
    authorization: String,
    instruction: I,
) -> Result<Intent, DecodeError>
where
    H: Command<Input = Submission<I>>,
    I: Serialize,
{
    Intent::run(event, H::owed(key, &Submission { payment_id, authorization, instruction }))
}
