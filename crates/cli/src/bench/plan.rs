//! How much is measured.

/// Rows, seconds and repetitions; one setting for all lines.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    pub(super) runs: usize,
    /// Operations or entries of one run.
    pub(super) rows: i64,
    /// Operations of a run in which each has a transaction of its own.
    pub(super) own_rows: i64,
    /// Length of runs that are measured by time.
    pub(super) seconds: u64,
    /// Samples of a latency.
    pub(super) samples: usize,
    /// The large backlog.
    pub(super) backlog: i64,
    /// Operations of it that are waited for.
    pub(super) backlog_part: i64,
    /// Rows that die under a held snapshot.
    pub(super) churn: i64,
}

impl Plan {
    pub(super) fn new(quick: bool, runs: Option<usize>) -> Self {
        if quick {
            return Self {
                runs: runs.unwrap_or(3),
                rows: 30_000,
                own_rows: 4_000,
                seconds: 2,
                samples: 60,
                backlog: 200_000,
                backlog_part: 20_000,
                churn: 60_000,
            };
        }
        Self {
            runs: runs.unwrap_or(7),
            rows: 60_000,
            own_rows: 10_000,
            seconds: 4,
            samples: 200,
            backlog: 1_000_000,
            backlog_part: 50_000,
            churn: 200_000,
        }
    }
}
