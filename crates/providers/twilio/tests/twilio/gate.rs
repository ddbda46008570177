//! What stands before every request: the provider's budget counts them one by one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use backline_failure::{Class, Entering, Failure, Gate, Permit};
use backline_twilio::{ConversationRef, State, delete_conversation, fetch_conversation, set_state};
use serde_json::json;

use crate::stand_in::{Answer, StandIn, answer, call, conversation, room, twilio};

/// Lets so many requests pass and counts what is asked of it.
#[derive(Debug, Default)]
struct Turnstile {
    lets: usize,
    entered: AtomicUsize,
    inside: Arc<AtomicUsize>,
    slowed: AtomicUsize,
}

struct Inside(Arc<AtomicUsize>);

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Gate for Turnstile {
    fn enter(&self) -> Entering<'_, Result<Permit, Failure>> {
        Box::pin(async {
            if self.entered.fetch_add(1, Ordering::AcqRel) >= self.lets {
                return Err(Failure::throttled("test.nothing_left"));
            }
            self.inside.fetch_add(1, Ordering::AcqRel);
            Ok(Permit::holding(Inside(Arc::clone(&self.inside))))
        })
    }

    fn slow_down(&self, retry_after: Option<Duration>) -> Entering<'_, ()> {
        Box::pin(async move {
            let seconds = retry_after.unwrap_or_default().as_secs();
            self.slowed.fetch_add(usize::try_from(seconds).unwrap_or(0), Ordering::AcqRel);
        })
    }
}

#[tokio::test]
async fn each_request_enters_once_and_a_refused_one_never_leaves() -> anyhow::Result<()> {
    let sid = room()?;
    let server = StandIn::serve(vec![answer(200, conversation(sid.as_str(), "n", "closed"))]).await?;
    let (client, gate) = (twilio(&server.url)?, Arc::new(Turnstile { lets: 2, ..Turnstile::default() }));
    let sent = call().with_gate(gate.clone());
    fetch_conversation(&client, &sent, &ConversationRef::Sid(sid.clone())).await?;
    set_state(&client, &sent, &sid, State::Closed).await?;
    assert_eq!((gate.entered.load(Ordering::Acquire), gate.inside.load(Ordering::Acquire)), (2, 0));
    assert_eq!(server.seen().len(), 2);

    let refused = call().with_gate(gate.clone());
    let failures = [
        fetch_conversation(&client, &refused, &ConversationRef::Sid(sid.clone())).await.err(),
        set_state(&client, &refused, &sid, State::Closed).await.err(),
        delete_conversation(&client, &refused, &sid).await.err(),
    ];
    for failure in failures {
        assert_eq!(failure.map(|failure| failure.code).as_deref(), Some("test.nothing_left"));
    }
    assert!(server.seen().is_empty() && !refused.may_have_left());
    Ok(())
}

#[tokio::test]
async fn an_answer_that_asks_for_less_is_heeded_before_the_caller_hears_of_it() -> anyhow::Result<()> {
    let body = json!({"code": 20429, "message": "too many", "status": 429}).to_string();
    let server =
        StandIn::serve(vec![Answer { status: 429, headers: vec![("retry-after", "7")], body }]).await?;
    let gate = Arc::new(Turnstile { lets: 2, ..Turnstile::default() });
    let call = call().with_gate(gate.clone());
    let (client, sid) = (twilio(&server.url)?, room()?);
    for told in [7, 14] {
        let failure = set_state(&client, &call, &sid, State::Closed).await.err();
        assert_eq!(failure.map(|failure| failure.class), Some(Class::Throttled));
        assert_eq!(gate.slowed.load(Ordering::Acquire), told);
    }
    Ok(())
}
