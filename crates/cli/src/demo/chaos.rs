//! What goes wrong, and when: a fixed plan over the progress of the application.

use super::freeze::Freezer;
use super::lies;
use super::stage::Stage;
use reqwest::Client;
use tokio::sync::watch;
use tokio::task::block_in_place;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Blow {
    KillRelay(usize),
    KillWorker(usize),
    KillTwilio(usize),
    KillPostgres,
    /// SIGSTOP past the lease's end, then SIGCONT, to one worker of each kind at a time.
    Freeze {
        worker: usize,
        twilio: usize,
    },
    /// The provider refuses everybody for a while.
    Storm,
}

/// At which percentage of acknowledged payments each blow falls.
const PLAN: [(usize, Blow); 15] = [
    (8, Blow::KillRelay(0)),
    (16, Blow::KillWorker(0)),
    (18, Blow::KillTwilio(0)),
    (22, Blow::Storm),
    (30, Blow::KillPostgres),
    (38, Blow::Freeze { worker: 1, twilio: 1 }),
    (50, Blow::KillRelay(1)),
    (54, Blow::KillTwilio(1)),
    (58, Blow::KillWorker(1)),
    (64, Blow::KillPostgres),
    (70, Blow::Storm),
    (76, Blow::KillRelay(0)),
    (82, Blow::KillWorker(0)),
    (88, Blow::KillTwilio(0)),
    (96, Blow::KillPostgres),
];

/// Carries the plan out and hands the stage back, everything running.
pub(super) async fn rage(
    mut stage: Stage,
    mut accepted: watch::Receiver<usize>,
    payments: usize,
    (freezer, chat_freezer): (&Freezer, &Freezer),
    client: &Client,
    tell: impl Fn(&str),
) -> anyhow::Result<Stage> {
    let sandbox = format!("http://{}", stage.stack.sandbox);
    for (percent, blow) in PLAN {
        accepted.wait_for(|count| *count * 100 >= payments * percent).await?;
        block_in_place(|| stage.keep_alive())?;
        tell(&format!("{percent}%: {}", blow.words(&stage)));
        match blow {
            Blow::KillRelay(n) => block_in_place(|| stage.relays[n].kill())?,
            Blow::KillWorker(n) => block_in_place(|| stage.workers[n].kill())?,
            Blow::KillTwilio(n) => block_in_place(|| stage.twilio[n].kill())?,
            Blow::KillPostgres => block_in_place(|| stage.kill_postgres())?,
            Blow::Freeze { worker, twilio } => {
                let (worker, twilio) = (&stage.workers[worker].process, &stage.twilio[twilio].process);
                tokio::try_join!(freezer.freeze(worker), chat_freezer.freeze(twilio)).map(drop)?;
            }
            Blow::Storm => lies::storm(client, &sandbox).await?,
        }
    }
    Ok(stage)
}

impl Blow {
    fn words(self, stage: &Stage) -> String {
        match self {
            Self::KillRelay(n) => format!("SIGKILL {}", stage.relays[n].label),
            Self::KillWorker(n) => format!("SIGKILL {}", stage.workers[n].label),
            Self::KillTwilio(n) => format!("SIGKILL {}", stage.twilio[n].label),
            Self::KillPostgres => "SIGKILL PostgreSQL".to_owned(),
            Self::Freeze { worker, twilio } => {
                let (worker, twilio) = (stage.workers[worker].label, stage.twilio[twilio].label);
                format!("SIGSTOP {worker} and {twilio} past their leases")
            }
            Self::Storm => "429 to everybody".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Blow, PLAN};

    #[test]
    fn every_process_is_hit_and_blows_are_in_order() {
        assert!(PLAN.is_sorted_by_key(|(percent, _)| *percent));
        for blow in [
            Blow::KillRelay(1),
            Blow::KillWorker(1),
            Blow::KillTwilio(0),
            Blow::KillTwilio(1),
            Blow::KillPostgres,
            Blow::Freeze { worker: 1, twilio: 1 },
            Blow::Storm,
        ] {
            assert!(PLAN.iter().any(|(_, planned)| *planned == blow), "{blow:?}");
        }
    }
}
