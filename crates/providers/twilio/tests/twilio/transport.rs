//! What leaves, what comes back, and what is known when nothing does.

use std::time::Duration;

use backline_failure::{Call, Class, Deadline};
use backline_twilio::{
    ConversationRef, Removal, State, add_participant, create_conversation, delete_conversation,
    fetch_conversation, remove_participant, set_state,
};
use serde_json::json;
use tokio::net::TcpListener;

use crate::sandbox::{chat, named};
use crate::stand_in::{Answer, OPERATION, StandIn, answer, call, conversation, member, room, twilio};

#[tokio::test]
async fn a_write_leaves_with_its_parameters_its_operation_and_nothing_else_of_ours() -> anyhow::Result<()> {
    let sid = room()?;
    let server = StandIn::serve(vec![answer(201, member(1, sid.as_str(), "user 1"))]).await?;
    let call = call().with_traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    add_participant(&twilio(&server.url)?, &call, &sid, &chat("user 1")).await?;

    assert!(call.may_have_left());
    let seen = server.seen();
    assert_eq!(seen.len(), 1);
    let path = format!("/v1/Conversations/{sid}/Participants");
    assert_eq!((seen[0].method.as_str(), seen[0].uri.path()), ("POST", path.as_str()));
    assert_eq!(seen[0].body, "Identity=user+1");
    let header = |name| seen[0].headers.get(name).and_then(|value| value.to_str().ok());
    assert_eq!(header("content-type"), Some("application/x-www-form-urlencoded"));
    assert_eq!(header("content-length"), Some("15"));
    let basic = "Basic U0swMTIzNDU2Nzg5YWJjZGVmMDEyMzQ1Njc4OWFiY2RlZjpzZWNyZXQ=";
    assert_eq!(header("authorization"), Some(basic));
    assert_eq!(header("x-backline-operation"), Some(OPERATION.to_string().as_str()));
    assert_eq!(header("traceparent"), call.traceparent.as_deref());
    Ok(())
}

#[tokio::test]
async fn a_deletion_is_marked_and_has_no_body() -> anyhow::Result<()> {
    let server = StandIn::serve(vec![answer(204, "")]).await?;
    let (sid, call) = (room()?, call());
    let gone = format!("MB{}", "1".repeat(32)).parse()?;
    let removed = remove_participant(&twilio(&server.url)?, &call, &sid, &gone).await?;
    assert!(removed == Removal::Removed && call.may_have_left());
    let seen = server.seen();
    assert_eq!((seen[0].method.as_str(), seen[0].body.as_str()), ("DELETE", ""));
    assert!(!seen[0].headers.contains_key("transfer-encoding"));
    Ok(())
}

#[tokio::test]
async fn a_refused_connection_is_transient_whatever_is_asked() -> anyhow::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let client = twilio(&format!("http://{}/", listener.local_addr()?))?;
    drop(listener);
    let (sid, write) = (room()?, call());
    let refused = [
        set_state(&client, &write, &sid, State::Closed).await.err(),
        delete_conversation(&client, &call(), &sid).await.err(),
        fetch_conversation(&client, &call(), &ConversationRef::Sid(sid)).await.err(),
    ];
    for failure in refused {
        let Some(failure) = failure else { anyhow::bail!("connected") };
        let summary = (failure.class, failure.code.as_ref());
        assert_eq!(summary, (Class::Transient, "twilio.connect_failed"));
    }
    assert!(!write.may_have_left());
    Ok(())
}

#[tokio::test]
async fn past_the_deadline_no_byte_leaves() -> anyhow::Result<()> {
    let server = StandIn::serve(vec![answer(204, "")]).await?;
    let (client, sid) = (twilio(&server.url)?, room()?);
    let until = |deadline| {
        Call::new(OPERATION, 1, 1, 1, "key".to_owned(), Duration::from_secs(9), Deadline::after(deadline))
    };
    let past = until(Duration::ZERO);
    // A deletion cannot be held back once its connection is being made, so it needs that time beforehand.
    let soon = until(Duration::from_secs(2));
    let failures = [
        set_state(&client, &past, &sid, State::Closed).await.err(),
        delete_conversation(&client, &past, &sid).await.err(),
        fetch_conversation(&client, &past, &ConversationRef::Sid(sid.clone())).await.err(),
        delete_conversation(&client, &soon, &sid).await.err(),
    ];
    for failure in failures {
        assert_eq!(failure.map(|failure| failure.code), Some("twilio.deadline_passed".into()));
    }
    assert!(!past.may_have_left() && !soon.may_have_left() && server.seen().is_empty());
    Ok(())
}

#[tokio::test]
async fn inputs_that_do_not_fit_are_refused_before_they_leave() -> anyhow::Result<()> {
    let server = StandIn::serve(vec![answer(201, "{}")]).await?;
    let (client, sid, call) = (twilio(&server.url)?, room()?, call());
    for name in ["", "..", sid.as_str(), &"x".repeat(257)] {
        let failure = create_conversation(&client, &call, &named(name)).await.err();
        assert_eq!(failure.map(|failure| failure.class), Some(Class::Rejected), "{name}");
    }
    let mut new = chat("user-1");
    new.attributes = Some("{".to_owned());
    let refused = [
        add_participant(&client, &call, &sid, &new).await.err(),
        add_participant(&client, &call, &sid, &chat("")).await.err(),
        set_state(&client, &call, &sid, State::Initializing).await.err(),
    ];
    for failure in refused {
        assert_eq!(failure.map(|failure| failure.code), Some("twilio.invalid_instruction".into()));
    }
    assert!(!call.may_have_left() && server.seen().is_empty());
    Ok(())
}

#[tokio::test]
async fn a_success_that_cannot_be_believed_is_unknown() -> anyhow::Result<()> {
    let sid = room()?;
    let other = format!("CH{}", "f".repeat(32));
    let mut foreign = conversation(sid.as_str(), "a", "closed");
    foreign["account_sid"] = json!(format!("AC{}", "0".repeat(32)));
    let moved = Answer { headers: vec![("location", "/elsewhere")], ..answer(302, "") };
    let cases = [
        (answer(200, "<html>fine</html>"), "twilio.unreadable_answer"),
        (answer(200, ""), "twilio.unreadable_answer"),
        (answer(200, " ".repeat(1024 * 1024 + 1)), "twilio.answer_too_large"),
        (answer(200, conversation("CH1", "a", "closed")), "twilio.unreadable_answer"),
        (answer(200, conversation(&other, "a", "closed")), "twilio.answer_differs"),
        (answer(200, conversation(sid.as_str(), "a", "active")), "twilio.answer_differs"),
        (answer(200, foreign), "twilio.answer_differs"),
        (moved, "twilio.unlisted_answer"),
    ];
    for (reply, code) in cases {
        let headers = [reply.headers.clone(), vec![("twilio-request-id", "RQ7")]].concat();
        let server = StandIn::serve(vec![Answer { headers, ..reply }]).await?;
        let Err(failure) = set_state(&twilio(&server.url)?, &call(), &sid, State::Closed).await else {
            anyhow::bail!("{code}: believed");
        };
        assert_eq!((failure.class, failure.code.as_ref()), (Class::Unknown, code));
        assert_eq!(failure.evidence.unwrap_or_default()["request_id"], "RQ7", "{code}");
        assert_eq!(server.seen().len(), 1, "{code}: one request, no retry");
    }
    Ok(())
}
