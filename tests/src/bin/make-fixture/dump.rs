//! The database as SQL that any client can run.

use anyhow::{Context, ensure};
use backline_dev_cluster::pg::Binaries;
use std::process::Command;

/// Roles belong to the server, so a dump has none of them.
const ROLES: &str = "do $$
declare r text;
begin
    foreach r in array array['backline_producer', 'backline_relay', 'backline_worker', 'backline_operator'] loop
        if not exists (select from pg_roles where rolname = r) then
            execute format('create role %I nologin', r);
        end if;
    end loop;
end $$;
";

pub(crate) fn dump(url: &str) -> anyhow::Result<String> {
    let program = Binaries::find()?.program("pg_dump")?;
    // Comments say nothing that a program reads, and are a third of the dump.
    let output = Command::new(program)
        .args(["--inserts", "--rows-per-insert=50", "--no-owner", "--no-comments", "--dbname", url])
        .output()
        .context("starting pg_dump")?;
    ensure!(output.status.success(), "pg_dump: {}", String::from_utf8_lossy(&output.stderr));
    let mut sql = ROLES.to_owned();
    let mut blank = true;
    for line in String::from_utf8(output.stdout)?.lines() {
        // psql's own commands, remarks, and a setting that PostgreSQL 15 does not know.
        if ["\\", "--", "SET transaction_timeout"].iter().any(|no| line.starts_with(no))
            || (blank && line.is_empty())
        {
            continue;
        }
        blank = line.is_empty();
        sql.push_str(line);
        sql.push('\n');
    }
    Ok(sql)
}
