//! Watches the loops of a process: half a worker looks alive and does nothing.

use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};
use tokio_util::sync::CancellationToken;

/// Stops the process when one of its loops dies. Every loop of a workload runs under it.
#[derive(Debug)]
pub(crate) struct Watch {
    soft: CancellationToken,
    panicked: Arc<OnceLock<&'static str>>,
}

impl Watch {
    pub(crate) fn new(soft: CancellationToken) -> Self {
        Self { soft, panicked: Arc::default() }
    }

    /// `work`, and a soft stop if it panics.
    pub(crate) fn over<F: Future<Output = ()>>(
        &self,
        name: &'static str,
        work: F,
    ) -> impl Future<Output = ()> + use<F> {
        let (soft, panicked) = (self.soft.clone(), Arc::clone(&self.panicked));
        async move {
            if AssertUnwindSafe(work).catch_unwind().await.is_err() {
                tracing::error!(name, "a loop panicked; this process stops");
                let _ = panicked.set(name);
                soft.cancel();
            }
        }
    }

    /// The first loop that panicked.
    pub(crate) fn panicked(&self) -> Option<&'static str> {
        self.panicked.get().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::Watch;
    use tokio_util::sync::CancellationToken;

    #[tokio::test]
    #[expect(clippy::panic, reason = "the defect that is watched for")]
    async fn a_panic_stops_the_process_and_is_named() {
        let soft = CancellationToken::new();
        let watch = Watch::new(soft.clone());
        watch.over("quiet", async {}).await;
        assert!(!soft.is_cancelled() && watch.panicked().is_none());
        watch.over("finisher", async { panic!("a defect") }).await;
        assert!(soft.is_cancelled());
        assert_eq!(watch.panicked(), Some("finisher"));
    }
}
