//! Calls that wait before they execute, whether or not anybody still listens.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use crate::app::{App, Inner};
use crate::faults::{Fault, Plan};
use crate::reply::Reply;

/// What the caller of a held call sees.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Hang {
    /// The reply, when there is one.
    UntilReply,
    /// Nothing, until the socket is closed after a while or by the caller.
    Silent(Option<Duration>),
}

impl Plan {
    /// How long the call waits, and what its caller sees meanwhile; `None` executes at once.
    pub(crate) fn hold(&self) -> Option<(Duration, Hang)> {
        match (&self.main, self.delay) {
            (Some(Fault::Late { apply_after, close_after }), _) => {
                Some((*apply_after, Hang::Silent(*close_after)))
            }
            (_, Some(delay)) => Some((delay, Hang::UntilReply)),
            (_, None) => None,
        }
    }
}

impl Inner {
    /// Counts a call that begins to wait.
    pub(crate) fn begin_hold(&mut self) {
        self.held += 1;
        self.peak_held = self.peak_held.max(self.held);
    }
}

/// Waits, then runs `end`, which hears whether the caller had given up. Dropping the future does not prevent `end`.
pub(crate) async fn hold(
    app: Arc<App>,
    delay: Duration,
    hang: Hang,
    end: impl FnOnce(&mut Inner, bool) -> Reply + Send + 'static,
) -> Reply {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let stop = app.stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            // A stopped sandbox has not applied what it still held, as a killed one has not.
            () = stop.cancelled() => return,
            () = tokio::time::sleep(delay) => {}
        }
        let abandoned = sender.is_closed() || matches!(hang, Hang::Silent(_));
        let reply = {
            let mut inner = app.lock();
            inner.held -= 1;
            end(&mut inner, abandoned)
        };
        // Nobody listens when the caller gave up; the effect exists all the same.
        drop(sender.send(reply));
    });
    match hang {
        Hang::UntilReply => receiver.await.unwrap_or_else(|_| Reply::dropped()),
        Hang::Silent(Some(close_after)) => {
            tokio::time::sleep(close_after).await;
            Reply::dropped()
        }
        Hang::Silent(None) => pending().await,
    }
}
