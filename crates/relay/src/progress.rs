//! What the loop tells the health pages.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// Signs of life of the relay's loop; cheap to clone.
#[derive(Clone, Debug)]
pub struct Progress {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    born: Instant,
    /// Milliseconds after `born`, plus one; 0 = never.
    turned: AtomicU64,
    looked: AtomicU64,
    stopping: AtomicBool,
}

impl Default for Progress {
    fn default() -> Self {
        Self {
            inner: Arc::new(Inner {
                born: Instant::now(),
                turned: AtomicU64::new(0),
                looked: AtomicU64::new(0),
                stopping: AtomicBool::new(false),
            }),
        }
    }
}

impl Progress {
    /// The loop went round, whatever came of it.
    pub fn turn(&self) {
        self.inner.turned.store(self.now(), Ordering::Relaxed);
    }

    /// A look at the outbox succeeded.
    pub(crate) fn look(&self) {
        self.inner.looked.store(self.now(), Ordering::Relaxed);
    }

    /// Shutdown has begun.
    pub(crate) fn stop(&self) {
        self.inner.stopping.store(true, Ordering::Relaxed);
    }

    /// Time since the loop last went round.
    #[must_use]
    pub fn since_turn(&self) -> Duration {
        self.since(&self.inner.turned)
    }

    /// Time since a look at the outbox last succeeded.
    #[must_use]
    pub fn since_look(&self) -> Duration {
        self.since(&self.inner.looked)
    }

    /// Whether shutdown has begun.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.inner.stopping.load(Ordering::Relaxed)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.inner.born.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1
    }

    fn since(&self, at: &AtomicU64) -> Duration {
        match at.load(Ordering::Relaxed) {
            0 => Duration::MAX,
            at => Duration::from_millis(self.now().saturating_sub(at)),
        }
    }
}
