//! `cargo xtask`: set-up and checks of this workspace, with nothing to install first but Rust and a C linker.

mod checks;
mod database;
mod deny;
mod peers;
mod postgres;
mod product;
mod query_data;
mod runner;
mod step;

use std::io;
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask <command>

  test           everything that CI checks: format, lints, dependencies, query data, docs, build, tests
  sqlx           rewrite .sqlx after changing a statement or a migration
  demo [ARGS]    build, then run `backline demo ARGS`
  peers [ARGS]   our stand-ins and requests against official clients and foreign fault proxies; --only NAME
  bench [ARGS]   release build, then run `backline bench ARGS` on a private, durable PostgreSQL";

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let command = args.next().unwrap_or_default();
    let rest: Vec<String> = args.collect();
    let result = match command.as_str() {
        "test" => checks::run(),
        "sqlx" => query_data::rewrite(),
        "demo" => product::demo(&rest),
        "peers" => peers::run(&rest),
        "bench" => product::bench(&rest),
        "" | "help" | "--help" | "-h" => {
            println!("{USAGE}");
            Ok(())
        }
        other => Err(io::Error::other(format!("unknown command `{other}`\n{USAGE}"))),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
