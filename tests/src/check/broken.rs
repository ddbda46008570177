//! Telling a promise that does not hold from a run that could not be made.

use anyhow::Error;
use std::fmt;

/// A promise does not hold. Every other error of a scenario says that nothing was found out: a process did not start, or
/// the database was out of reach.
#[derive(Debug)]
pub struct Broken(String);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Broken {}

/// Asserts what a scenario is for.
///
/// # Errors
/// [`Broken`] unless it `holds`.
pub fn promised(holds: bool, otherwise: impl FnOnce() -> String) -> anyhow::Result<()> {
    if holds { Ok(()) } else { Err(Error::new(Broken(otherwise()))) }
}
