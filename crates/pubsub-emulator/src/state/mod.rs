//! State of subscriptions, free of clocks and I/O: every function is told the time.

mod dead_letter;
mod entry;
mod lease;
mod ordering;
mod queue;
mod retry;
mod seek;
mod stream;

pub(crate) use dead_letter::{Forward, forwarded};
#[cfg(test)]
pub(crate) use entry::Delivery;
pub(crate) use entry::{AckId, AckResult, Effects};
pub(crate) use queue::{DeadLetterRule, Queue, Rules};
pub(crate) use retry::RetryBackoff;
pub(crate) use stream::Capacity;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod random;
