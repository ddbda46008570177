//! The shell between us and a child, which ends the child when we end (`keeper.sh`).

use std::io::{self, BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

/// What the keeper does to its child when the pipe ends.
#[derive(Clone, Copy)]
pub(crate) enum Ending {
    /// SIGKILL: processes of ours must survive it anyway.
    Kill,
    /// SIGQUIT: PostgreSQL's immediate shutdown, for data that nobody needs afterwards.
    Quit,
    /// SIGINT: PostgreSQL's fast shutdown, which writes a checkpoint.
    Interrupt,
}

/// How to run one child.
pub(crate) struct Plan<'a> {
    pub(crate) program: &'a Path,
    pub(crate) ending: Ending,
    /// Both output streams are appended here.
    pub(crate) log: &'a Path,
    /// Removed once the child has ended because the pipe did.
    pub(crate) doomed: Option<&'a Path>,
}

/// A running child and its keeper. Dropping it ends the child and waits for that.
pub(crate) struct Keeper {
    shell: Child,
    pipe: Option<ChildStdin>,
    pub(crate) pid: i32,
}

impl Keeper {
    /// Starts the child; `prepare` adds arguments, environment and identity. The child reads nothing, and a Ctrl-C
    /// at the terminal does not reach it: it has a process group of its own.
    pub(crate) fn start(plan: &Plan<'_>, prepare: impl FnOnce(&mut Command)) -> io::Result<Keeper> {
        let signal = match plan.ending {
            Ending::Kill => "KILL",
            Ending::Quit => "QUIT",
            Ending::Interrupt => "INT",
        };
        let mut command = Command::new("/bin/sh");
        command.args(["-c", include_str!("keeper.sh"), "keeper", signal]);
        command.arg(plan.doomed.unwrap_or(Path::new(""))).arg(plan.log).arg(plan.program);
        prepare(&mut command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
        let mut shell = command.spawn()?;
        let pipe = shell.stdin.take();
        let mut line = String::new();
        if let Some(output) = shell.stdout.take() {
            BufReader::new(output).read_line(&mut line)?;
        }
        let Ok(pid) = line.trim().parse() else {
            return Err(io::Error::other(format!("cannot start {}", plan.program.display())));
        };
        Ok(Keeper { shell, pipe, pid })
    }

    /// The child's exit code once it has ended, as a shell reports it: 128 + n after signal n.
    pub(crate) fn ended(&mut self) -> io::Result<Option<i32>> {
        Ok(self.shell.try_wait()?.map(|status| status.code().unwrap_or(-1)))
    }

    /// Ends the child by the plan's signal and waits until it is gone.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        drop(self.pipe.take());
        self.shell.wait().map(drop)
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // Nothing to do about a failure here: the shell is our child, so waiting for it cannot fail.
        let _ = self.end();
    }
}
