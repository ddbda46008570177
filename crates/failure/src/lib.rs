//! Failure as a closed type: what provider modules say and what the runtime does about it.
//!
//! Whoever sees the wire chooses the [`Class`] and a stable code; one pure function, [`decide`], chooses what happens
//! to the operation; nothing else does (architecture, section 6). The crate also holds the [`Call`] that carries a
//! submission to a provider, because the point after which a request may have left is noted there and decides
//! between retry and unknown.
//!
//! Nothing here performs I/O; the boot clock of [`Deadline`] is the only thing read from outside.

mod backoff;
mod call;
mod class;
mod deadline;
mod failure;
mod gate;
mod name;
mod policy;
mod resolution;
mod retry_after;

pub use backoff::backoff;
pub use call::Call;
pub use class::{Class, Mode};
pub use deadline::{CallDeadline, Deadline, LeaseEnd};
pub use failure::{DETAIL_LIMIT, Failure};
pub use gate::{Entering, Gate, Permit};
pub use name::UnknownName;
pub use policy::{Decision, Policy, decide};
pub use resolution::Resolution;
pub use retry_after::parse_retry_after;
