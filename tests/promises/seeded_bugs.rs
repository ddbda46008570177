//! The tests of the tests: each deliberate defect must break a promise in a scenario that does not know of it, and
//! every scenario must pass without one. A process that does not start, or a database out of reach, catches nothing.

use backline_promises::check::Broken;
use backline_promises::sweep::Role;
use backline_promises::sweep::scenario::{self as s, Env};
use std::fmt;
use std::sync::Mutex;
use std::time::Instant;

/// A defect and the scenario that must not survive it. Numbers are those of the reliability plan.
struct Seeded(u32, &'static str, Scenario);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Scenario {
    DiesAt(&'static str),
    DiesBeforePublishing,
    MissingTopic,
    LateCommit,
    TwoZombies,
    AskedAgainMeanwhile,
    ReplyLost,
    DatabaseBlocked,
    ClockStep,
    DeadAtTheLastAttempt,
    CancelledInDoubt,
    AskedTwice,
    Replayed,
    CancelledWhileRunning,
    PanickingAfterTheReply,
    LateRequest,
    JoinedWhileLooking,
    DeletedInDoubt,
}

impl Scenario {
    async fn run(self, env: Env<'_>) -> anyhow::Result<()> {
        match self {
            Self::DiesBeforePublishing => s::dies_before_publishing(env).await,
            Self::DiesAt(site) => s::dies_at(env, Role::Worker, site).await,
            Self::MissingTopic => s::missing_topic(env).await,
            Self::LateCommit => s::late_commit(env).await,
            Self::TwoZombies => s::two_zombies(env).await,
            Self::AskedAgainMeanwhile => s::asked_again_meanwhile(env).await,
            Self::ReplyLost => s::reply_lost(env).await,
            Self::DatabaseBlocked => s::database_blocked(env).await,
            Self::ClockStep => s::clock_step(env).await,
            Self::DeadAtTheLastAttempt => s::dead_at_the_last_attempt(env).await,
            Self::CancelledInDoubt => s::cancelled_in_doubt(env).await,
            Self::AskedTwice => s::asked_twice(env).await,
            Self::Replayed => s::replayed(env).await,
            Self::CancelledWhileRunning => s::cancelled_while_running(env).await,
            Self::PanickingAfterTheReply => s::panicking_after_the_reply(env).await,
            Self::LateRequest => s::late_request(env).await,
            Self::JoinedWhileLooking => s::joined_while_looking(env).await,
            Self::DeletedInDoubt => s::deleted_in_doubt(env).await,
        }
    }
}

const SEEDED: &[Seeded] = &[
    Seeded(1, "published is recorded before the broker confirmed", Scenario::DiesBeforePublishing),
    Seeded(2, "the whole batch is recorded on a partial confirmation", Scenario::MissingTopic),
    Seeded(3, "the highest number read is a watermark", Scenario::LateCommit),
    Seeded(4, "completed without comparing the token", Scenario::TwoZombies),
    Seeded(5, "completed without comparing the generation", Scenario::AskedAgainMeanwhile),
    Seeded(6, "each attempt has a new idempotency key", Scenario::ReplyLost),
    Seeded(7, "the attempt's number is in the request", Scenario::ReplyLost),
    Seeded(8, "acknowledged before the operation is durable", Scenario::DatabaseBlocked),
    Seeded(9, "outcome and children in two transactions", Scenario::DiesAt("tx.finish_one.commit.after")),
    Seeded(10, "children have random ids", Scenario::ReplyLost),
    Seeded(11, "a receipt counts as completion", Scenario::DiesAt("tx.accept.commit.before")),
    Seeded(12, "the sweep updates by id from a snapshot", Scenario::ClockStep),
    Seeded(13, "a crash at the last attempt is not swept", Scenario::DeadAtTheLastAttempt),
    Seeded(14, "unknown is treated as transient", Scenario::CancelledInDoubt),
    Seeded(15, "a replay is a new operation", Scenario::Replayed),
    Seeded(21, "identity is lost between hot table and history", Scenario::AskedTwice),
    Seeded(22, "cancelling a running payment loses its result", Scenario::CancelledWhileRunning),
    Seeded(23, "a panic after the reply is dead", Scenario::PanickingAfterTheReply),
    Seeded(24, "a sleeper's request leaves after its lease", Scenario::LateRequest),
    Seeded(25, "a newer generation is dropped when an older attempt ends", Scenario::JoinedWhileLooking),
    Seeded(26, "the serial key is freed on unknown", Scenario::DeletedInDoubt),
    Seeded(27, "a SID is lost with its row", Scenario::DeletedInDoubt),
];

/// One run of a scenario, with a defect or without.
struct Run(Option<u32>, Scenario);

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(bug) => write!(f, "{:?} with bug {bug}", self.1),
            None => write!(f, "{:?}", self.1),
        }
    }
}

/// Runs at a time; each waits for leases most of the time.
const THREADS: usize = 3;

#[test]
fn every_seeded_bug_is_caught_and_no_scenario_fails_without_one() -> anyhow::Result<()> {
    let started = Instant::now();
    let mut scenarios: Vec<_> = SEEDED.iter().map(|seeded| seeded.2).collect();
    scenarios.sort_unstable();
    scenarios.dedup();
    let mut runs: Vec<_> = scenarios.iter().map(|scenario| Run(None, *scenario)).collect();
    runs.extend(SEEDED.iter().map(|seeded| Run(Some(seeded.0), seeded.2)));
    if let Ok(only) = std::env::var("BACKLINE_SWEEP_ONLY") {
        runs.retain(|run| run.to_string().contains(&only));
    }
    let total = runs.iter().filter(|run| run.0.is_some()).count();
    let queue = Mutex::new(runs.into_iter());
    let (caught, wrong) = (Mutex::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(run) = queue.lock().ok().and_then(|mut queue| queue.next()) {
                    let result = run_one(&run);
                    match (run.0, result) {
                        (None, Ok(())) => {}
                        (None, Err(error)) => push(&wrong, format!("{run} failed: {error:#}")),
                        (Some(_), Err(error)) if !error.chain().any(|cause| cause.is::<Broken>()) => {
                            push(&wrong, format!("{run} failed, but not by a broken promise: {error:#}"));
                        }
                        (Some(_), Err(error)) => {
                            println!("caught: {run}: {}", first_line(&error));
                            if let Ok(mut caught) = caught.lock() {
                                *caught += 1;
                            }
                        }
                        (Some(bug), Ok(())) => push(&wrong, format!("{run} survived: {}", name(bug))),
                    }
                }
            });
        }
    });
    let caught = caught.into_inner().unwrap_or(0);
    println!("seeded bugs caught: {caught} of {total} in {:.0?}", started.elapsed());
    let wrong = wrong.into_inner().unwrap_or_default();
    anyhow::ensure!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    Ok(())
}

fn run_one(run: &Run) -> anyhow::Result<()> {
    let env: Vec<_> = run.0.map(|bug| ("BACKLINE_SEEDED_BUG", bug.to_string())).into_iter().collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(run.1.run(&env))
}

fn push(list: &Mutex<Vec<String>>, text: String) {
    println!("{text}");
    if let Ok(mut list) = list.lock() {
        list.push(text);
    }
}

fn name(bug: u32) -> &'static str {
    SEEDED.iter().find(|seeded| seeded.0 == bug).map_or("", |seeded| seeded.1)
}

/// What broke, in one line of a report.
fn first_line(error: &anyhow::Error) -> String {
    let text = format!("{error:#}").split_whitespace().collect::<Vec<_>>().join(" ");
    text.chars().take(160).collect()
}
