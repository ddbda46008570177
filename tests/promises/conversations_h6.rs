//! H6: desired state that changes all the time, at a provider without keys and preconditions.
//!
//! Predicate: afterwards the provider's participants are the committed members of every conversation, no archived
//! conversation was opened again, every deleted one is gone, and no two calls about one conversation overlapped but
//! those of a caller that had given up.
//!
//! The races: 4 producers and 10 conversations, two workers of which one is killed and the other sleeps past its
//! leases, again and again, and a provider that loses replies, acts late, lags and refuses.

use anyhow::{Context, ensure};
use backline_promises::check::{self, Expected};
use backline_promises::{Chat, SANDBOX, Stack, TWILIO, eventually};
use serde_json::{Value, json};
use sqlx::PgPool;
use std::collections::BTreeMap;
use tokio::sync::watch;
use uuid::Uuid;

const CONVERSATIONS: usize = 10;
const PRODUCERS: usize = 4;
const CHANGES: usize = 100;
const PEOPLE: usize = 8;

/// The conversation that is archived halfway, and the one that is deleted.
const ARCHIVED: usize = 8;
const DELETED: usize = 9;

/// What the provider does besides the truth. Late requests land inside the declared linger (500 ms), and lists lag less
/// than the declared lag (300 ms).
fn lies() -> Value {
    let lie = |kinds: Value, share: f64, fault: Value| json!({"match": kinds, "when": {"probability": share}, "fault": fault});
    let writes = [
        "participant.add",
        "participant.remove",
        "conversation.update",
        "conversation.delete",
        "conversation.create",
    ];
    let mut rules = Vec::new();
    for kind in writes {
        let of = || json!({"provider": "twilio", "kind": kind});
        rules.extend([
            lie(of(), 0.10, json!({"kind": "drop_reply"})),
            lie(of(), 0.05, json!({"kind": "drop_before"})),
            lie(of(), 0.05, json!({"kind": "stored_error", "status": 500, "applied": true})),
            lie(of(), 0.03, json!({"kind": "late", "apply_after": "400ms", "close_after": "100ms"})),
            lie(of(), 0.03, json!({"kind": "garbage"})),
            lie(of(), 0.20, json!({"kind": "hide", "for": "200ms"})),
        ]);
    }
    rules.push(lie(json!({"provider": "twilio"}), 0.02, json!({"kind": "rate_limited", "reason": "x"})));
    rules.push(lie(json!({"provider": "twilio"}), 0.30, json!({"kind": "slow", "delay": "50ms"})));
    rules.push(lie(json!({"provider": "twilio", "method": "GET"}), 0.03, json!({"kind": "truncated"})));
    Value::Array(rules)
}

/// One producer: a walk through conversations and people that is the same in every run.
async fn produce(
    chat: Chat,
    conversations: Vec<Uuid>,
    seed: usize,
    mut allowed: watch::Receiver<usize>,
) -> anyhow::Result<usize> {
    let mut state = 0x9e37_79b9_usize.wrapping_mul(seed + 1);
    let mut draw = |below: usize| {
        state = state.wrapping_mul(1_103_515_245).wrapping_add(12_345) % 0x8000_0000;
        (state >> 8) % below
    };
    let mut changes = 0;
    while changes < CHANGES {
        allowed.wait_for(|allowed| changes < *allowed).await?;
        if seed == 0 && changes == CHANGES / 2 {
            chat.archive(*conversations.get(ARCHIVED).context("archived")?).await?;
            ensure!(chat.delete(*conversations.get(DELETED).context("deleted")?).await?);
        }
        let (conversation, person) =
            (*conversations.get(draw(CONVERSATIONS)).context("conversation")?, draw(PEOPLE));
        if chat.leave(conversation, person).await? {
            changes += 1;
            continue;
        }
        match chat.join(conversation, person).await {
            // An ended conversation takes no members, which is no change.
            Err(error) if error.to_string().contains("is not active") => {}
            joined => {
                joined?;
                changes += 1;
            }
        }
    }
    Ok(changes)
}

/// Lets the producers go on as the workers do: changes that come all at once would be carried out as one.
async fn pace(pool: PgPool, allowed: &watch::Sender<usize>) -> anyhow::Result<()> {
    let sql = "select count(*) from backline.operation_history";
    let ended = async || sqlx::query_scalar::<_, i64>(sql).fetch_one(&pool).await;
    let mut last = ended().await?;
    while *allowed.borrow() < CHANGES {
        eventually("an outcome", async || Ok(ended().await? > last)).await?;
        last = ended().await?;
        allowed.send_modify(|allowed| *allowed += 1);
    }
    Ok(())
}

/// Kills one worker and stops the other past its leases, with work in their hands; changes go on meanwhile. Both are
/// running afterwards.
async fn strike(
    stack: &mut Stack,
    (killed, stopped): (&str, &str),
    allowed: &watch::Sender<usize>,
) -> anyhow::Result<()> {
    const RUNNING: &str = "select count(*) from backline.operation where state = 'running'";
    const EXPIRED: &str = "select count(*) from backline.attempt_evidence where code = 'lease_expired'";
    stack.member(killed)?.kill9()?;
    // Nobody but the sleeper has a live claim once the dead one's are taken over, and it holds them asleep.
    let before = loop {
        eventually("work in hand", async || Ok(stack.count(RUNNING).await? > 0)).await?;
        stack.member(stopped)?.pause()?;
        if stack.count(RUNNING).await? > 0 {
            break stack.count(EXPIRED).await?;
        }
        stack.member(stopped)?.resume()?;
    };
    allowed.send_modify(|allowed| *allowed += CHANGES / 10);
    stack.member(killed)?.start()?;
    eventually("the leases of both to be over", async || {
        let over = "select count(*) from backline.lease where until < clock_timestamp()";
        Ok(stack.count(EXPIRED).await? > before && stack.count(over).await? == 0)
    })
    .await?;
    stack.member(stopped)?.resume()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn membership_that_changes_all_the_time_converges() -> anyhow::Result<()> {
    let mut stack = Stack::builder()
        .without_relay()
        .worker_as("first", TWILIO)
        .worker_as("second", TWILIO)
        .start()
        .await?;
    let chat = Chat::install(&stack, PEOPLE).await?;
    stack.add_faults(SANDBOX, &lies())?;
    let mut conversations = Vec::new();
    for _ in 0..CONVERSATIONS {
        conversations.push(chat.open(3).await?);
    }
    eventually("every conversation to have its room", async || Ok(stack.rooms()?.len() == CONVERSATIONS))
        .await?;
    let (allowed, changes) = watch::channel(1);
    let producers: Vec<_> = (0..PRODUCERS)
        .map(|seed| tokio::spawn(produce(chat.clone(), conversations.clone(), seed, changes.clone())))
        .collect();
    tokio::try_join!(pace(stack.pool().clone(), &allowed), async {
        strike(&mut stack, ("first", "second"), &allowed).await?;
        strike(&mut stack, ("second", "first"), &allowed).await
    })?;
    for producer in producers {
        assert_eq!(producer.await??, CHANGES);
    }
    let (archived, deleted) =
        (*conversations.get(ARCHIVED).context("archived")?, *conversations.get(DELETED).context("deleted")?);
    for kind in ["twilio.participants", "twilio.close"] {
        chat.old_intent(kind, archived).await?;
        chat.old_intent(kind, deleted).await?;
    }
    check::settled(&stack, &Expected::recovered()).await?;

    let rooms: BTreeMap<_, _> = stack
        .rooms()?
        .into_iter()
        .filter(|room| !room.deleted)
        .map(|room| (room.name.clone(), room))
        .collect();
    let committed = chat.committed().await?;
    assert_eq!(committed.len(), CONVERSATIONS - 2);
    for (conversation, people) in &committed {
        let room = rooms.get(conversation).context("an active conversation has its room")?;
        assert_eq!(&room.people, people, "participants of {conversation}");
        assert_eq!(room.states, ["active"]);
    }
    assert_eq!(stack.room(archived)?.states, ["active", "closed"], "closed once and never opened again");
    ensure!(stack.room(deleted)?.deleted);
    assert_eq!(rooms.len(), CONVERSATIONS - 1, "nothing exists that nobody has");
    assert_eq!(
        stack.count("select count(*) from chat.conversation_tombstone where gone_at is null").await?,
        0
    );
    assert_eq!(stack.overlapping_calls()?, Vec::<String>::new());
    check::conversations(&stack).await
}
