//! Asking Stripe what became of a submission, and comparing what it says with what was asked.
//!
//! Lists, not the search API: search is eventually consistent, up to an hour behind in an incident, and does not know
//! transfers, payouts or refunds (<https://docs.stripe.com/search#data-freshness>).

use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use backline_failure::{Call, Failure, Resolution};
use serde::de::DeserializeOwned;
use stripe_client_core::StripeRequest;
use stripe_types::{AsCursorOpt, Currency, List, Object, RangeBoundsTs, RangeQueryTs};

use crate::failure_table::unreadable;
use crate::{Amount, OPERATION_ID, Stripe};

/// Objects of one page, the most that Stripe gives.
pub(crate) const PAGE: i64 = 100;

/// Pages of one lookup: 2,000 objects. A window with more says "still unknown" instead of spending the account's read
/// allowance; the caller narrows the window or a person looks.
const PAGES: usize = 20;

/// An instruction, as something that an object of Stripe's either fulfils or does not.
pub(crate) trait Expected {
    type Object: Object + DeserializeOwned;
    type Found;

    fn metadata(object: &Self::Object) -> Option<&HashMap<String, String>>;

    /// The first thing about the object that this instruction did not ask for.
    fn difference(&self, object: &Self::Object) -> Option<String>;

    fn found(object: &Self::Object) -> Self::Found;

    /// Whether the object only records a refusal, so that it neither is the effect nor stands in its way.
    fn is_refusal(&self, _object: &Self::Object) -> bool {
        false
    }
}

/// Who else may put objects into the list that is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Filtered by our own operation id: a stranger in it is a conflict.
    Own,
    /// Filtered by something shared: strangers are expected.
    Shared,
}

/// When an object may have been created, for effects that have no list filter of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CreatedWindow {
    from: i64,
    until: i64,
}

impl CreatedWindow {
    /// From the first presentation of the submission until now, widened on both sides by five minutes: Stripe stamps
    /// objects with its own clock, and ours may be wrong.
    #[must_use]
    pub fn new(first_presented: SystemTime, now: SystemTime) -> Self {
        const SKEW: i64 = 5 * 60;
        let seconds = |at: SystemTime| {
            let since = at.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
            i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
        };
        let (from, until) = (seconds(first_presented), seconds(now));
        Self {
            from: from.min(until).saturating_sub(SKEW).max(0),
            until: from.max(until).saturating_add(SKEW),
        }
    }

    pub(crate) fn range(self) -> RangeQueryTs {
        RangeQueryTs::Bounds(RangeBoundsTs {
            gte: Some(self.from),
            lte: Some(self.until),
            ..Default::default()
        })
    }
}

/// Sends a creating request and believes its answer only if it speaks of what was asked.
pub(crate) async fn create<E, R>(
    client: &Stripe,
    call: &Call,
    account: Option<&str>,
    expected: &E,
    request: &R,
) -> Result<E::Found, Failure>
where
    E: Expected,
    R: StripeRequest<Output = E::Object>,
{
    let answer = client.ask(call, account, request).await?;
    let difference = match owner::<E>(&answer.value) {
        Some(owner) if owner == call.operation_id.to_string() => expected.difference(&answer.value),
        _ => Some("metadata does not name the operation".to_owned()),
    };
    match difference {
        None => Ok(E::found(&answer.value)),
        Some(what) => Err(unreadable(&answer.reply, answer.asked, "stripe.answer_differs", &what)),
    }
}

/// Reads a list to its end and says what it holds of this operation. `page` builds the request that starts after an id.
pub(crate) async fn find<E, R>(
    client: &Stripe,
    call: &Call,
    account: Option<&str>,
    expected: &E,
    scope: Scope,
    page: impl Fn(Option<&str>) -> R,
) -> Result<Resolution<E::Found>, Failure>
where
    E: Expected,
    R: StripeRequest<Output = List<E::Object>>,
    List<E::Object>: DeserializeOwned,
{
    let operation_id = call.operation_id.to_string();
    let mut cursor: Option<String> = None;
    let mut applied: Option<E::Object> = None;
    for _ in 0..PAGES {
        let list = client.ask(call, account, &page(cursor.as_deref())).await?.value;
        cursor = list.data.last().and_then(|last| last.id().as_cursor_opt()).map(str::to_owned);
        let complete = !list.has_more;
        for object in list.data {
            match owner::<E>(&object) {
                Some(owner) if owner == operation_id => {}
                _ if scope == Scope::Shared => continue,
                _ => return Ok(Resolution::Conflict(conflict::<E>(&object, "is not of this operation"))),
            }
            if expected.is_refusal(&object) {
                continue;
            }
            if let Some(what) = expected.difference(&object) {
                return Ok(Resolution::Conflict(conflict::<E>(&object, &what)));
            }
            if let Some(first) = applied {
                return Ok(Resolution::Conflict(conflict::<E>(
                    &object,
                    &format!("exists beside {}", id(&first)),
                )));
            }
            applied = Some(object);
        }
        match (complete, &cursor) {
            (true, _) => {
                return Ok(
                    applied.map_or(Resolution::NotApplied, |object| Resolution::Applied(E::found(&object)))
                );
            }
            (false, Some(_)) => {}
            (false, None) => break,
        }
    }
    // One that was found may have a twin on the pages that were not read.
    Ok(Resolution::StillUnknown)
}

/// Names money that is not the one asked for.
pub(crate) fn money_difference(asked: Amount, minor: i64, currency: &Currency) -> Option<String> {
    let currency = currency.to_string();
    (!asked.equals_wire(minor, &currency))
        .then(|| format!("amount is {minor} {currency} instead of {} {}", asked.minor(), asked.currency()))
}

/// Names a field that is not the one asked for.
pub(crate) fn text_difference(field: &str, asked: &str, found: Option<&str>) -> Option<String> {
    (found != Some(asked)).then(|| format!("{field} is {} instead of {asked}", found.unwrap_or("absent")))
}

fn owner<E: Expected>(object: &E::Object) -> Option<&str> {
    E::metadata(object)?.get(OPERATION_ID).map(String::as_str)
}

fn conflict<E: Expected>(object: &E::Object, what: &str) -> String {
    format!("{}: {what}", id(object))
}

fn id<O: Object>(object: &O) -> String {
    object.id().as_cursor_opt().unwrap_or("object without id").to_owned()
}
