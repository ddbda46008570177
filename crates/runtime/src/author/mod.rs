//! What a worker's author writes against.

mod consumer;
pub(crate) mod erased;
mod handler;
mod operation;
mod owed;
mod record;
mod spec;

pub use consumer::{Consumer, Intent};
pub use handler::{Command, Conclusion, Guard, Read, Reconcile, Step};
pub use operation::{Evidence, Operation};
pub use owed::Owed;
pub use record::Record;
pub use spec::{KindSpec, Serial};
