//! A provider that lies: each lie has the class that keeps memberships right.

use std::collections::BTreeMap;
use std::time::Duration;

use backline_failure::{Class, Failure};
use backline_sandbox::{BadText, Fault, RetryAfter};
use backline_twilio::{
    Addition, ConversationRef, Creation, Deletion, Removal, add_participant, create_conversation,
    delete_conversation, fetch_conversation, list_participants, remove_participant,
};

use crate::sandbox::{Provider, chat, fresh, named};

fn summary(failure: &Failure) -> (Class, &str) {
    (failure.class, &failure.code)
}

fn stored(applied: bool) -> Fault {
    Fault::StoredError { status: 500, code: None, applied, should_retry: None }
}

fn refuse(status: u16, code: &str) -> Fault {
    Fault::Refuse {
        status,
        error_type: None,
        code: Some(code.to_owned()),
        should_retry: None,
        retry_after: None,
        headers: BTreeMap::new(),
    }
}

#[tokio::test]
async fn a_lost_write_is_unknown_and_its_repetition_meets_the_fact() -> anyhow::Result<()> {
    use Class::{Blocked, Rejected, Throttled, Transient, Unknown};
    let html = |status| Fault::Html { status, applied: true };
    let limited = Fault::RateLimited { reason: String::new(), retry_after: Some(RetryAfter::Seconds(7)) };
    // The fault, what is known of it, and whether the member joined all the same.
    let cases = [
        (Fault::DropReply, (Unknown, "twilio.connection_lost"), true),
        (Fault::DropBefore, (Unknown, "twilio.connection_lost"), false),
        (Fault::Reset { after_bytes: 20 }, (Unknown, "twilio.answer_lost"), true),
        (Fault::Truncated, (Unknown, "twilio.unreadable_answer"), true),
        (Fault::Garbage { status: 201, applied: true }, (Unknown, "twilio.unreadable_answer"), true),
        (html(200), (Unknown, "twilio.unreadable_answer"), true),
        (html(502), (Unknown, "twilio.server_error"), true),
        (html(404), (Unknown, "twilio.unlisted_answer"), true),
        (html(401), (Unknown, "twilio.unlisted_answer"), true),
        (
            Fault::HugeError { status: 502, bytes: 2_000_000, applied: true },
            (Unknown, "twilio.answer_too_large"),
            true,
        ),
        (
            Fault::BadText { text: BadText::EmojiCut, status: 502, applied: true },
            (Unknown, "twilio.server_error"),
            true,
        ),
        (stored(true), (Unknown, "twilio.server_error"), true),
        (stored(false), (Unknown, "twilio.server_error"), false),
        (limited, (Throttled, "twilio.too_many_requests"), false),
        (Fault::Unauthorized, (Blocked, "twilio.unauthorized"), false),
        (Fault::Forbidden, (Blocked, "twilio.unauthorized"), false),
        (refuse(409, "50425"), (Rejected, "twilio.address_bound_elsewhere"), false),
        (refuse(400, "50417"), (Rejected, "twilio.participant_limit"), false),
        (refuse(409, "59999"), (Transient, "twilio.error_59999"), false),
        (refuse(409, "50353"), (Transient, "twilio.answer_out_of_place"), false),
    ];
    for (fault, expected, joined) in cases {
        let name = format!("{fault:?}");
        let provider = Provider::honest().await?;
        let (client, sid) = (&provider.client, provider.conversation("a").await?);
        provider.lie("participant.add", fault);
        let call = fresh();
        let Err(failure) = add_participant(client, &call, &sid, &chat("user-1")).await else {
            anyhow::bail!("{name}: believed");
        };
        assert_eq!(summary(&failure), expected, "{name}");
        assert!(call.may_have_left() && failure.detail.len() <= 500, "{name}");
        assert_eq!(failure.retry_after.is_some(), failure.class == Throttled, "{name}");
        assert_eq!(provider.members(), usize::from(joined), "{name}");

        let again = add_participant(client, &fresh(), &sid, &chat("user-1")).await?;
        assert_eq!(again == Addition::AlreadyPresent, joined, "{name}: {again:?}");
        assert_eq!(provider.members(), 1, "{name}");
    }
    Ok(())
}

#[tokio::test]
async fn a_lost_creation_is_found_by_its_name() -> anyhow::Result<()> {
    let provider = Provider::honest().await?;
    let client = &provider.client;
    provider.lie("conversation.create", Fault::DropReply);
    let lost = create_conversation(client, &fresh(), &named("a")).await;
    assert_eq!(lost.map_err(|failure| failure.class), Err(Class::Unknown));
    assert_eq!(create_conversation(client, &fresh(), &named("a")).await?, Creation::NameTaken);
    let found = fetch_conversation(client, &fresh(), &ConversationRef::UniqueName("a".to_owned())).await?;
    assert_eq!(found.map(|found| found.sid.to_string()), provider.room()["sid"].as_str().map(str::to_owned));
    Ok(())
}

#[tokio::test]
async fn a_lost_deletion_is_unknown_and_then_absent() -> anyhow::Result<()> {
    for fault in [Fault::DropReply, stored(true), Fault::Html { status: 404, applied: true }] {
        let provider = Provider::honest().await?;
        let (client, sid) = (&provider.client, provider.conversation("a").await?);
        let member = provider.member(&sid, "user-1").await?;
        provider.lie("participant.remove", fault.clone());
        let call = fresh();
        let lost = remove_participant(client, &call, &sid, &member).await;
        assert_eq!(lost.map_err(|failure| failure.class), Err(Class::Unknown));
        assert!(call.may_have_left());
        let again = remove_participant(client, &fresh(), &sid, &member).await?;
        assert_eq!(again, Removal::AlreadyAbsent);

        provider.lie("conversation.delete", fault);
        let lost = delete_conversation(client, &fresh(), &sid).await;
        assert_eq!(lost.map_err(|failure| failure.class), Err(Class::Unknown));
        assert_eq!(delete_conversation(client, &fresh(), &sid).await?, Deletion::AlreadyAbsent);
    }
    Ok(())
}

#[tokio::test]
async fn a_read_that_fails_is_transient_and_marks_nothing() -> anyhow::Result<()> {
    let provider = Provider::honest().await?;
    let (client, sid) = (&provider.client, provider.conversation("a").await?);
    for fault in [
        Fault::DropReply,
        Fault::Truncated,
        Fault::Html { status: 404, applied: true },
        Fault::Html { status: 200, applied: true },
        stored(true),
    ] {
        let name = format!("{fault:?}");
        provider.lie("participant.list", fault);
        let call = fresh();
        let failed = list_participants(client, &call, &sid).await;
        assert_eq!(failed.map_err(|failure| failure.class), Err(Class::Transient), "{name}");
        assert!(!call.may_have_left(), "{name}");
    }
    assert_eq!(list_participants(client, &fresh(), &sid).await?, Some(Vec::new()));
    Ok(())
}

#[tokio::test]
async fn an_abandoned_addition_may_act_late_and_still_only_once() -> anyhow::Result<()> {
    let provider = Provider::honest().await?;
    let (client, sid) = (&provider.client, provider.conversation("a").await?);
    let late = Fault::Late { apply_after: Duration::from_millis(300), close_after: None };
    provider.lie("participant.add", late);
    let mut call = fresh();
    call.timeout = Duration::from_millis(50);
    let lost = add_participant(client, &call, &sid, &chat("user-1")).await.err();
    assert_eq!(lost.as_ref().map(summary), Some((Class::Unknown, "twilio.timeout")));
    // A list before it acts proves nothing; afterwards there is one member, whoever added it.
    let joined = add_participant(client, &fresh(), &sid, &chat("user-1")).await?;
    assert!(matches!(joined, Addition::Added(_)));
    let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
    while provider.sandbox.ledger()["held"] != 0 {
        anyhow::ensure!(tokio::time::Instant::now() < deadline, "the late call never ended");
        tokio::task::yield_now().await;
    }
    assert_eq!(provider.members(), 1);
    Ok(())
}

#[tokio::test]
async fn a_conversation_too_new_to_be_seen_is_absent_and_no_success() -> anyhow::Result<()> {
    // Field case 85: Twilio answers 404 to a valid request just after the creation.
    let provider = Provider::honest().await?;
    let client = &provider.client;
    provider.lie("conversation.create", Fault::Hide { span: Duration::from_secs(3_600) });
    let sid = provider.conversation("a").await?;
    let early = add_participant(client, &fresh(), &sid, &chat("user-1")).await?;
    assert_eq!(early, Addition::ConversationAbsent);
    assert_eq!(create_conversation(client, &fresh(), &named("a")).await?, Creation::NameTaken);
    provider.control(backline_sandbox::Action::ClockForward { by: Duration::from_secs(7_200) });
    provider.member(&sid, "user-1").await?;
    Ok(())
}
