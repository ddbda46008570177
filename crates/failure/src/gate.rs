use std::any::Any;
use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use crate::Failure;

/// The future of a [`Gate`], boxed because a call does not know whose gate it has.
pub type Entering<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What stands before every request of an attempt: the provider's budget, shared by a fleet.
///
/// An attempt may take many requests, and the provider counts requests. So the budget is spent here, by the one who
/// sends, and not once per attempt.
pub trait Gate: fmt::Debug + Send + Sync {
    /// Waits until one request may be sent. Nothing of it has left when the wait is given up or refused.
    ///
    /// # Errors
    /// The wait outlasted the attempt, or the budget could not be asked: no request may be sent.
    fn enter(&self) -> Entering<'_, Result<Permit, Failure>>;

    /// The provider asked for less: whoever enters from now on waits accordingly, this attempt included.
    fn slow_down(&self, retry_after: Option<Duration>) -> Entering<'_, ()>;
}

/// Leave for one request, held until its answer has been read; dropping it gives the place in flight to the next.
#[must_use = "the request is under way for as long as its permit is held"]
pub struct Permit(#[expect(dead_code, reason = "held for its drop")] Option<Box<dyn Any + Send>>);

impl Permit {
    /// A permit that gives `held` back when it is dropped.
    pub fn holding(held: impl Any + Send) -> Self {
        Self(Some(Box::new(held)))
    }

    /// Where nothing limits.
    pub fn free() -> Self {
        Self(None)
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Permit")
    }
}
