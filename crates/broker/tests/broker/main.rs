//! The broker crate against the embedded emulator.

mod grants;
mod publish;
mod subscribe;
mod support;
mod topology;
