//! Stopping by signal, and the exit code that tells the truth about it.

use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// How a workload ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Everything in flight ended and was written.
    Drained,
    /// The grace was over: leases run out and others take the work.
    Abandoned,
}

impl Exit {
    /// 0 when drained, 75 (`EX_TEMPFAIL`) when work was abandoned to its leases.
    #[must_use]
    pub fn code(self) -> ExitCode {
        match self {
            Self::Drained => ExitCode::SUCCESS,
            Self::Abandoned => ExitCode::from(75),
        }
    }
}

/// First SIGTERM or SIGINT cancels `soft`, the second `hard`.
pub(crate) fn on_signals(soft: CancellationToken, hard: CancellationToken) {
    tokio::spawn(async move {
        let (Ok(mut term), Ok(mut int)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
        else {
            tracing::error!("signals cannot be received; only SIGKILL stops this process");
            return;
        };
        for token in [soft, hard] {
            tokio::select! {
                _ = term.recv() => {}
                _ = int.recv() => {}
            }
            token.cancel();
        }
    });
}
