//! The broker crate against the embedded emulator.

mod publish;
mod subscribe;
mod support;
