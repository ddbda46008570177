//! Crash points of the programs under test (`backline-crash-point`), seen from outside.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// What happens at the boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// SIGKILL: nothing after the boundary runs.
    Kill,
    /// SIGSTOP: the process becomes a zombie holder of its claims until it is resumed.
    Stop,
}

/// The n-th arrival at a durable boundary.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Site {
    /// Name, for example `tx.finish.commit.before`.
    pub name: String,
    /// Which arrival in one process, from 1.
    pub nth: u64,
}

/// One fault, and the proof that it happened.
#[derive(Debug, Clone)]
pub struct CrashPlan {
    site: Site,
    action: Action,
    proof: PathBuf,
}

impl CrashPlan {
    /// `action` at `site`; the proof of its having fired is written below `dir`.
    #[must_use]
    pub fn new(site: Site, action: Action, dir: &Path) -> CrashPlan {
        let proof = dir.join(format!("fired-{}-{}", site.name, site.nth));
        CrashPlan { site, action, proof }
    }

    /// True once the fault has happened. A test whose fault never happened has shown nothing and must fail.
    #[must_use]
    pub fn fired(&self) -> bool {
        fs::read_to_string(&self.proof).is_ok_and(|text| text.lines().any(|line| line.starts_with("FIRED ")))
    }

    pub(crate) fn env(&self) -> [(&'static str, String); 2] {
        let action = match self.action {
            Action::Kill => "kill",
            Action::Stop => "stop",
        };
        [
            ("BACKLINE_CRASH_PLAN", format!("{}#{}={action}", self.site.name, self.site.nth)),
            ("BACKLINE_CRASH_FIRED", self.proof.display().to_string()),
        ]
    }
}

/// The arrivals of a recording run (a stack built with `record_crash_points`), the sites to visit in a sweep.
///
/// # Errors
/// The file cannot be read: nothing was recorded.
pub fn recorded(file: &Path) -> std::io::Result<Vec<Site>> {
    let mut seen = BTreeMap::<String, u64>::new();
    let text = fs::read_to_string(file)?;
    let sites = text.lines().map(|line| {
        let nth = seen.entry(line.to_owned()).or_default();
        *nth += 1;
        Site { name: line.to_owned(), nth: *nth }
    });
    Ok(sites.collect())
}
