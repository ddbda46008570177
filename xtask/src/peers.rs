//! `cargo xtask peers`: our stand-ins and our requests, checked against things that nobody here wrote.
//!
//! An emulator that its own author tests agrees with its author. These checks let others judge:
//!
//! | check | judge | judged |
//! |---|---|---|
//! | `pubsub-client` | Google's Python client of Pub/Sub | the emulator |
//! | `stripe-sdk` | Stripe's Python library | the sandbox |
//! | `stripe-bodies` | Stripe's OpenAPI description | every request that the payments worker sends, every answer |
//! | `stripe-replay` | stripe-stateful-mock, on idempotency keys | the sandbox |
//! | `twilio-wire` | Prism on Twilio's OpenAPI description | every request that the Twilio worker sends, every answer |
//! | `provider-faults` | microburst's faults on HTTP | worker and runtime: no payment lost or doubled |
//! | `broker-faults` | microburst's faults on gRPC | relay and runtime: no event lost, no payment doubled |
//!
//! Set-up is automatic: a Python environment in `target/peers/venv` (versions of `xtask/peers/requirements.txt`) and
//! npm packages in `target/peers/node`, fetched by pip and npm themselves and kept until a version changes or the
//! folder moves. Each check starts private processes on free ports; PostgreSQL is a throwaway. Logs are in
//! `target/peers/logs`.
//!
//! The checks are Python in `xtask/peers`, because the judges are. Each prints a line per case: `ok NAME`,
//! `FAILED NAME: reason` or `skipped NAME: reason`. What a check cannot have (Python, npm, the right to make a network
//! namespace) makes it one skipped case, with the reason. The last line counts: `N passed, N failed, N skipped`.
//!
//! - `--only NAME`: this check alone; may be repeated.
//! - `--no-build`: with the programs as they were built last.

mod checks;
mod namespace;
mod stack;
mod tally;
mod tools;

use crate::step;
use std::io;
use tally::Tally;
use tools::Tools;

/// Everything that the checks start.
const PROGRAMS: [&str; 5] = [
    "backline-pubsub-emulator",
    "backline-sandbox",
    "backline-relay",
    "backline-payments",
    "backline-twilio",
];

/// Runs the checks.
///
/// # Errors
/// An argument is unknown, the programs do not build, or a case failed.
pub(crate) fn run(args: &[String]) -> io::Result<()> {
    let (mut only, mut build) = (Vec::new(), true);
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match arg.as_str() {
            "--no-build" => build = false,
            "--only" => only.push(rest.next().map(String::as_str).unwrap_or_default()),
            other => return Err(io::Error::other(format!("peers: unknown argument `{other}`"))),
        }
    }
    let names: Vec<&str> = checks::ALL.iter().map(|(name, _)| *name).collect();
    if let Some(unknown) = only.iter().find(|name| !names.contains(name)) {
        let known = names.join(", ");
        return Err(io::Error::other(format!("peers: no check `{unknown}`; there are {known}")));
    }
    if build {
        let mut cargo = step::cargo(["build"])?;
        step::run("programs", cargo.args(PROGRAMS.iter().flat_map(|name| ["--bin", *name])))?;
    }
    let tools = Tools::new()?;
    let mut tally = Tally::default();
    for (name, check) in checks::ALL {
        if only.is_empty() || only.contains(name) {
            println!("== {name}");
            tally.begin(name);
            if let Err(error) = check(&tools, &mut tally) {
                tally.stopped(&error);
            }
        }
    }
    tally.close()
}
