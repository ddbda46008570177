//! Crash points of the programs under test (`backline-crash-point`), seen from outside.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// What happens at the boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// SIGKILL: nothing after the boundary runs.
    Kill,
    /// SIGSTOP: the process becomes a zombie holder of its claims until it is resumed.
    Stop,
    /// A panic that unwinds from the boundary, as of a handler's bug.
    Panic,
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
    /// `action` at `site`; the proof of its having fired is written below `dir`, and is this plan's alone: an older plan
    /// of the same site would prove what has not happened yet.
    #[must_use]
    pub fn new(site: Site, action: Action, dir: &Path) -> CrashPlan {
        static PLANS: AtomicU64 = AtomicU64::new(0);
        let plan = PLANS.fetch_add(1, Ordering::Relaxed);
        let proof = dir.join(format!("fired-{}-{}-plan-{plan}", site.name, site.nth));
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
            Action::Panic => "panic",
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

#[cfg(test)]
mod tests {
    use super::{Action, CrashPlan, recorded};
    use std::path::Path;

    #[test]
    fn arrivals_are_numbered_per_site_and_an_unfired_plan_says_so() -> std::io::Result<()> {
        let file = std::env::temp_dir().join(format!("backline-sites-{}", std::process::id()));
        std::fs::write(&file, "a.before\na.after\na.before\n")?;
        let sites = recorded(&file)?;
        std::fs::remove_file(&file)?;
        let seen: Vec<_> = sites.iter().map(|site| (site.name.as_str(), site.nth)).collect();
        assert_eq!(seen, [("a.before", 1), ("a.after", 1), ("a.before", 2)]);
        let [.., last] = sites.as_slice() else { unreachable!("three were written") };
        let plan = CrashPlan::new(last.clone(), Action::Stop, Path::new("/nowhere"));
        assert_eq!(plan.env()[0], ("BACKLINE_CRASH_PLAN", "a.before#2=stop".to_owned()));
        assert!(!plan.fired());
        Ok(())
    }
}
