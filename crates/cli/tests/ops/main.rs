//! What an operator may decide, through the real command against a database of its own.

mod decisions;
mod pauses;
mod refusals;
mod setup;
mod stories;
mod support;
