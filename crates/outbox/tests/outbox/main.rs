//! The outbox crate against a real server.

mod append;
mod doorbell;
mod producer_role;
mod transaction;
