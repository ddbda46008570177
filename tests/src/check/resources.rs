//! Invariant 25: what relays and workers use is bounded by what they were told, whatever the scenario did to them.

use crate::{EMULATOR, SANDBOX, Stack};
use anyhow::Context;
use std::collections::HashSet;
use std::fs;
use std::path::Path;

/// Peak resident memory of one process, in KiB: 256 MiB.
const MEMORY: u64 = 256 * 1024;

/// Connections to PostgreSQL beside the pool for work: heartbeat, the doorbell's listener, its declarations, and views of
/// a worker; the doorbell's listener and scrapes of a relay.
const BESIDE: usize = 4;

/// Descriptors beside those connections: the runtime's own, the log, health pages, the broker's channels, and the
/// connections to a provider that are kept for the next call.
const DESCRIPTORS: usize = 64;

/// Resident memory of a process in KiB: `VmRSS` is what it has now, `VmHWM` the most it ever had.
///
/// # Errors
/// The process is gone.
pub fn memory(pid: i32, which: &str) -> anyhow::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let value = status.lines().find_map(|line| line.strip_prefix(which)?.strip_prefix(':'));
    Ok(value.with_context(|| format!("no {which}"))?.trim().trim_end_matches(" kB").parse()?)
}

pub(super) fn check(stack: &Stack) -> anyhow::Result<Vec<String>> {
    let mut violations = Vec::new();
    let ports = stack.database_ports();
    for (name, member) in stack.members().filter(|(name, _)| *name != EMULATOR && *name != SANDBOX) {
        // A process that a fault has ended a moment ago uses nothing.
        let Some(used) = member.pid().and_then(|pid| Used::of(pid, &ports).ok()) else { continue };
        if used.peak > MEMORY {
            violations.push(format!("25 {name} used {} KiB of memory, {MEMORY} allowed", used.peak));
        }
        let connections = used.configured + BESIDE;
        if used.connections > connections {
            violations.push(format!("25 {name} has {} connections, {connections} allowed", used.connections));
        }
        let descriptors = connections + DESCRIPTORS;
        if used.descriptors > descriptors {
            violations.push(format!("25 {name} has {} descriptors, {descriptors} allowed", used.descriptors));
        }
    }
    Ok(violations)
}

struct Used {
    /// KiB.
    peak: u64,
    /// To PostgreSQL.
    connections: usize,
    /// What it was told.
    configured: usize,
    descriptors: usize,
}

impl Used {
    fn of(pid: i32, ports: &[u16]) -> anyhow::Result<Used> {
        let process = Path::new("/proc").join(pid.to_string());
        let environment = fs::read(process.join("environ"))?;
        let environment = String::from_utf8_lossy(&environment);
        let told =
            |name: &str| environment.split('\0').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        let pool = if told("BACKLINE_RELAY_HEALTH").is_some() {
            "BACKLINE_RELAY_CONNECTIONS"
        } else {
            "BACKLINE_CONNECTIONS"
        };
        let open: Vec<String> = fs::read_dir(process.join("fd"))?
            .flatten()
            .filter_map(|entry| Some(fs::read_link(entry.path()).ok()?.display().to_string()))
            .collect();
        let table = fs::read_to_string(process.join("net/tcp"))?;
        let database = sockets_to(&table, ports);
        Ok(Used {
            peak: memory(pid, "VmHWM")?,
            connections: open.iter().filter(|link| database.contains(link.as_str())).count(),
            configured: told(pool).context("not told how many connections")?.parse()?,
            descriptors: open.len(),
        })
    }
}

/// Established connections to one of `ports` in a table as of `/proc/net/tcp`, as the links of their descriptors.
/// Columns: <https://www.kernel.org/doc/html/latest/networking/proc_net_tcp.html>.
fn sockets_to(table: &str, ports: &[u16]) -> HashSet<String> {
    let socket = |line: &str| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let (_, port) = columns.get(2)?.rsplit_once(':')?;
        let wanted = ports.contains(&u16::from_str_radix(port, 16).ok()?) && *columns.get(3)? == "01";
        wanted.then(|| columns.get(9).map(|inode| format!("socket:[{inode}]")))?
    };
    table.lines().skip(1).filter_map(socket).collect()
}

#[cfg(test)]
mod tests {
    use super::sockets_to;

    #[test]
    fn only_established_connections_to_the_server_count() {
        let table =
            "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1538 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 111 1
   1: 0100007F:C350 0100007F:1538 01 00000000:00000000 00:00000000 00000000     0        0 222 1
   2: 0100007F:C351 0100007F:1538 06 00000000:00000000 00:00000000 00000000     0        0 0 1";
        let found = sockets_to(table, &[5432]);
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["socket:[222]"]);
    }
}
