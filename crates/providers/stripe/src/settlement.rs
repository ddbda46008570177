use backline_failure::{Call, Failure};
use serde::{Deserialize, Serialize};
use stripe_core::balance_transaction::RetrieveBalanceTransaction;
use stripe_shared::BalanceTransaction;
use stripe_types::Expandable;

use crate::Stripe;

/// What has become of an accepted effect. Every answer may still be contradicted by a later one: a payout that was paid
/// can fail days afterwards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Settlement {
    /// On its way.
    Pending,
    /// Stopped until someone acts; Stripe's status says what is missing.
    NeedsAction {
        /// Stripe's status.
        status: String,
    },
    /// The money is where it should be.
    Settled,
    /// It will not arrive.
    Failed {
        /// Stripe's failure code, `unspecified` if it gave none.
        reason: String,
    },
    /// Taken back before it moved.
    Canceled,
    /// Moved, and moved back in part or whole.
    Reversed {
        /// How much came back, in minor units.
        minor: i64,
    },
    /// A status that this build does not know; nothing is concluded from it.
    Unlisted {
        /// Stripe's status.
        status: String,
    },
}

impl Settlement {
    pub(crate) fn failed(reason: Option<&String>) -> Self {
        Self::Failed { reason: reason.map_or_else(|| "unspecified".to_owned(), Clone::clone) }
    }
}

/// Whether the money of a balance transaction is available; pending while there is none.
pub(crate) async fn availability(
    client: &Stripe,
    call: &Call,
    transaction: Option<&Expandable<BalanceTransaction>>,
) -> Result<Settlement, Failure> {
    let status = match transaction {
        None => return Ok(Settlement::Pending),
        Some(Expandable::Object(transaction)) => transaction.status.clone(),
        Some(Expandable::Id(id)) => {
            client.ask(call, None, &RetrieveBalanceTransaction::new(id)).await?.value.status
        }
    };
    Ok(match status.as_str() {
        "available" => Settlement::Settled,
        "pending" => Settlement::Pending,
        _ => Settlement::Unlisted { status },
    })
}
