//! The system's process table, read without libc: who is whose child, and who is really gone.

use rustix::process::{Pid, Signal, kill_process};
use std::process::Command;
use std::{fs, io};

/// One row of the process table.
pub(crate) struct Row {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    /// Dead but not yet collected by its parent: counts as gone.
    pub(crate) zombie: bool,
}

/// Every process of this machine: from `/proc` where it exists, else from `ps` (macOS).
pub(crate) fn rows() -> io::Result<Vec<Row>> {
    match fs::read_dir("/proc/self") {
        Ok(_) => Ok(fs::read_dir("/proc")?.flatten().filter_map(|entry| proc_row(&entry.path())).collect()),
        Err(_) => ps_rows(),
    }
}

fn proc_row(dir: &std::path::Path) -> Option<Row> {
    let pid = dir.file_name()?.to_str()?.parse().ok()?;
    let stat = fs::read_to_string(dir.join("stat")).ok()?;
    // The second field is the program's name in parentheses and may hold spaces and parentheses itself.
    let mut fields = stat.get(stat.rfind(')')? + 1..)?.split_whitespace();
    let zombie = matches!(fields.next()?, "Z" | "X");
    Some(Row { pid, parent: fields.next()?.parse().ok()?, zombie })
}

fn ps_rows() -> io::Result<Vec<Row>> {
    let output = Command::new("ps").args(["-A", "-o", "pid=,ppid=,stat="]).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let row = |line: &str| {
        let mut fields = line.split_whitespace();
        let (pid, parent) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        Some(Row { pid, parent, zombie: fields.next()?.starts_with('Z') })
    };
    Ok(text.lines().filter_map(row).collect())
}

/// The living direct children of `pid`.
pub(crate) fn children(pid: i32) -> io::Result<Vec<i32>> {
    Ok(rows()?.iter().filter(|row| row.parent == pid && !row.zombie).map(|row| row.pid).collect())
}

/// Sends `signal`; a process that is already gone is not an error.
pub(crate) fn send(pid: i32, signal: Signal) -> io::Result<()> {
    let Some(target) = Pid::from_raw(pid) else {
        return Err(io::Error::other(format!("{pid} is not a process id")));
    };
    match kill_process(target, signal) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(io::Error::from(error)),
    }
}
