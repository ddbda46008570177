//! Crash points: named places at durable boundaries where a drill may kill or stop this process.
//!
//! The one place that runs transactions, the broker and the provider transports call [`reach`] with a static site
//! name before and after each effect, so new code is swept without anyone remembering it (architecture, section 5).
//! Unless `BACKLINE_CRASH_PLAN` or `BACKLINE_CRASH_RECORD` is set, `reach` is one relaxed load and nothing else.
//!
//! * `BACKLINE_CRASH_RECORD=<file>` appends every reached site, one a line: the recording run of a sweep.
//! * `BACKLINE_CRASH_PLAN=<site>#<n>=<kill|stop|panic>` acts on the n-th arrival (from 1) at that site in this process.
//!   `stop` raises SIGSTOP: whoever drills sends SIGCONT later. `panic` unwinds from there, as a handler's bug would. A fired plan appends `FIRED <site>#<n>` to the file
//!   named by `BACKLINE_CRASH_FIRED`, so that a run whose fault never happened can be told from a passed one.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};

static ACTIVE: AtomicBool = AtomicBool::new(false);
static PLAN: OnceLock<Plan> = OnceLock::new();

struct Plan {
    site: String,
    nth: u64,
    action: Action,
    record: Option<String>,
    fired: Option<String>,
    seen: Mutex<HashMap<&'static str, u64>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Kill,
    Stop,
    Panic,
}

/// Reads the drill's plan from the environment; call once at the start of `main`.
///
/// # Errors
/// A plan that does not parse is an error naming the variable: a drill that silently does nothing proves nothing.
pub fn init_from_env() -> Result<(), String> {
    let record = std::env::var("BACKLINE_CRASH_RECORD").ok();
    let text = std::env::var("BACKLINE_CRASH_PLAN").ok();
    if record.is_none() && text.is_none() {
        return Ok(());
    }
    let (site, nth, action) = match text.as_deref() {
        None => (String::new(), 0, Action::Kill),
        Some(text) => parse(text).ok_or_else(|| {
            format!("BACKLINE_CRASH_PLAN: `{text}` is not of the form `<site>#<n>=<kill|stop|panic>`")
        })?,
    };
    let fired = std::env::var("BACKLINE_CRASH_FIRED").ok();
    let plan = Plan { site, nth, action, record, fired, seen: Mutex::new(HashMap::new()) };
    if PLAN.set(plan).is_ok() {
        ACTIVE.store(true, Ordering::Release);
    }
    Ok(())
}

fn parse(text: &str) -> Option<(String, u64, Action)> {
    let (at, action) = text.rsplit_once('=')?;
    let (site, nth) = at.rsplit_once('#')?;
    let action = match action {
        "kill" => Action::Kill,
        "stop" => Action::Stop,
        "panic" => Action::Panic,
        _ => return None,
    };
    Some((site.to_owned(), nth.parse().ok().filter(|n| *n > 0)?, action))
}

/// Says that execution stands at the durable boundary `site`.
///
/// Names are `<area>.<what>.<before|after>`, for example `tx.finish.commit.before`.
#[inline]
pub fn reach(site: &'static str) {
    if ACTIVE.load(Ordering::Relaxed) {
        act(site);
    }
}

#[cold]
fn act(site: &'static str) {
    let Some(plan) = PLAN.get() else { return };
    let count = {
        let mut seen = plan.seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let count = seen.entry(site).or_insert(0);
        *count += 1;
        *count
    };
    if let Some(file) = &plan.record {
        append(file, site);
    }
    if site == plan.site && count == plan.nth {
        if let Some(file) = &plan.fired {
            append(file, &format!("FIRED {site}#{count}"));
        }
        let raise = |signal| rustix::process::kill_process(rustix::process::getpid(), signal);
        match plan.action {
            Action::Stop => drop(raise(rustix::process::Signal::STOP)),
            #[expect(clippy::panic, reason = "what the drill asked for")]
            Action::Panic => panic!("the drill's panic at {site}"),
            Action::Kill => {
                let _ = raise(rustix::process::Signal::KILL);
                // The signal is on its way; nothing after the boundary may run.
                loop {
                    std::thread::park();
                }
            }
        }
    }
}

/// Whether the seeded bug `number` is switched on (`BACKLINE_SEEDED_BUG`, debug builds only): a deliberate defect that
/// the promise tests must catch without knowing it. Release builds have no seeded bugs.
#[inline]
#[must_use]
pub fn seeded_bug(number: u32) -> bool {
    cfg!(debug_assertions) && *SEEDED.get_or_init(seeded) == number
}

static SEEDED: OnceLock<u32> = OnceLock::new();

fn seeded() -> u32 {
    std::env::var("BACKLINE_SEEDED_BUG").ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn append(file: &str, line: &str) {
    // One write call per line, so that lines of several processes do not interleave.
    if let Ok(mut out) = OpenOptions::new().create(true).append(true).open(file) {
        let _ = out.write_all(format!("{line}\n").as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::{Action, parse};

    #[test]
    fn a_plan_names_site_arrival_and_action() {
        assert_eq!(
            parse("tx.finish.commit.before#3=kill"),
            Some(("tx.finish.commit.before".into(), 3, Action::Kill))
        );
        assert_eq!(parse("provider.call.sent#1=stop"), Some(("provider.call.sent".into(), 1, Action::Stop)));
        assert_eq!(parse("x#0=kill"), None);
        assert_eq!(parse("x=kill"), None);
        assert_eq!(parse("x#1=explode"), None);
    }
}
