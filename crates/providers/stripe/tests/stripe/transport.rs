//! What leaves, what comes back, and what is known when nothing does.

use std::time::Duration;

use crate::stand_in::{Answer, OPERATION, StandIn, answer, call, instruction, list, stripe, transfer};
use backline_failure::{Call, Class, Deadline};
use backline_stripe::{TransferRef, create_transfer, find_transfer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

#[tokio::test]
async fn a_transfer_leaves_with_its_key_its_operation_and_nothing_else_of_ours() -> anyhow::Result<()> {
    let made = transfer("tr_1", &OPERATION.to_string(), 1250);
    let server = StandIn::serve(vec![answer(200, made)]).await?;
    let call = call().with_traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");

    let found = create_transfer(&stripe(&server.url, "sk_test_a")?, &call, &instruction()?).await?;

    assert_eq!(found, TransferRef { id: "tr_1".to_owned(), created: 1_700_000_000 });
    assert!(call.may_have_left());
    let seen = server.seen();
    assert_eq!(seen.len(), 1);
    assert_eq!((seen[0].method.as_str(), seen[0].uri.path()), ("POST", "/v1/transfers"));
    assert_eq!(
        seen[0].body,
        format!(
            "amount=1250&currency=eur&destination=acct_1&metadata[operation_id]={OPERATION}&transfer_group={OPERATION}"
        )
    );
    let header = |name| seen[0].headers.get(name).and_then(|value| value.to_str().ok());
    assert_eq!(header("content-length"), Some(seen[0].body.len().to_string().as_str()));
    assert_eq!(header("idempotency-key"), Some("key-of-the-submission"));
    assert_eq!(header("authorization"), Some("Bearer sk_test_a"));
    assert_eq!(header("traceparent"), call.traceparent.as_deref());
    assert!(header("stripe-version").is_some() && header("stripe-account").is_none());
    Ok(())
}

#[tokio::test]
async fn rotated_credentials_change_neither_key_nor_bytes() -> anyhow::Result<()> {
    // Field case 65: a key made of a credential turns a retry into a second payment.
    let made = transfer("tr_1", &OPERATION.to_string(), 1250);
    let server = StandIn::serve(vec![answer(500, ""), answer(200, made)]).await?;
    let call = call();
    let lost = create_transfer(&stripe(&server.url, "sk_test_a")?, &call, &instruction()?).await;
    assert_eq!(lost.map_err(|failure| failure.class), Err(Class::Unknown));
    create_transfer(&stripe(&server.url, "sk_test_b")?, &call, &instruction()?).await?;

    let seen = server.seen();
    assert_eq!(seen[0].headers["idempotency-key"], seen[1].headers["idempotency-key"]);
    assert_ne!(seen[0].headers["authorization"], seen[1].headers["authorization"]);
    assert_eq!(seen[0].body, seen[1].body);
    Ok(())
}

#[tokio::test]
async fn a_refused_connection_is_transient_and_nothing_left() -> anyhow::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/", listener.local_addr()?);
    drop(listener);
    let client = stripe(&url, "sk_test_a")?;

    let fresh = call();
    let failure = create_transfer(&client, &fresh, &instruction()?).await.err();
    assert_eq!(failure.as_ref().map(|failure| failure.class), Some(Class::Transient));
    assert_eq!(failure.map(|failure| failure.code), Some("stripe.connect_failed".into()));
    assert!(!fresh.may_have_left());

    // An earlier request of the same attempt stays in doubt.
    let earlier = call();
    earlier.mark_may_have_left();
    create_transfer(&client, &earlier, &instruction()?).await.err();
    assert!(earlier.may_have_left());
    Ok(())
}

#[tokio::test]
async fn past_the_deadline_no_byte_leaves() -> anyhow::Result<()> {
    let server = StandIn::serve(vec![answer(200, "{}")]).await?;
    let second = Duration::from_secs(1);
    let call = Call::new(OPERATION, 1, 1, 1, "key".to_owned(), second, Deadline::after(Duration::ZERO));
    let failure = create_transfer(&stripe(&server.url, "sk_test_a")?, &call, &instruction()?).await.err();
    assert_eq!(failure.map(|failure| failure.code), Some("stripe.deadline_passed".into()));
    assert!(!call.may_have_left() && server.seen().is_empty());
    Ok(())
}

#[tokio::test]
async fn inputs_that_do_not_fit_are_refused_before_they_leave() -> anyhow::Result<()> {
    let server = StandIn::serve(vec![answer(200, "{}")]).await?;
    let client = stripe(&server.url, "sk_test_a")?;

    let mut wrong = instruction()?;
    wrong.destination = "acct_1/../../v1/payouts".to_owned();
    let call_one = call();
    let failure = create_transfer(&client, &call_one, &wrong).await.err();
    assert_eq!(failure.map(|failure| failure.class), Some(Class::Rejected));

    let mut call_two = call();
    call_two.key = "k".repeat(256);
    let failure = create_transfer(&client, &call_two, &instruction()?).await.err();
    assert_eq!(failure.map(|failure| failure.class), Some(Class::Poison));

    assert!(!call_one.may_have_left() && !call_two.may_have_left() && server.seen().is_empty());
    Ok(())
}

#[tokio::test]
async fn a_success_that_cannot_be_believed_is_unknown() -> anyhow::Result<()> {
    let ours = OPERATION.to_string();
    let cases = [
        (answer(200, "<html>fine</html>"), "stripe.unreadable_answer"),
        (answer(200, ""), "stripe.unreadable_answer"),
        (answer(200, " ".repeat(1024 * 1024 + 1)), "stripe.answer_too_large"),
        (answer(200, transfer("tr_1", &ours, 1251)), "stripe.answer_differs"),
        (answer(200, transfer("tr_1", "another operation", 1250)), "stripe.answer_differs"),
        (
            Answer { headers: vec![("location", "/v1/elsewhere")], ..answer(302, "") },
            "stripe.unlisted_answer",
        ),
    ];
    for (reply, code) in cases {
        let server = StandIn::serve(vec![Answer {
            headers: [reply.headers.clone(), vec![("request-id", "req_7")]].concat(),
            ..reply
        }])
        .await?;
        let Err(failure) =
            create_transfer(&stripe(&server.url, "sk_test_a")?, &call(), &instruction()?).await
        else {
            anyhow::bail!("{code}: believed");
        };
        assert_eq!((failure.class, failure.code.as_ref()), (Class::Unknown, code));
        assert_eq!(failure.evidence.unwrap_or_default()["request_id"], "req_7", "{code}");
        assert_eq!(server.seen().len(), 1, "{code}: one request, no retry");
    }
    Ok(())
}

#[derive(Clone, Copy, Debug)]
enum Break {
    BeforeAnswer,
    InsideBody,
    Never,
}

/// Reads a request whole, then breaks as told.
async fn breaking_server(how: Break) -> anyhow::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/", listener.local_addr()?);
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut buffer = [0_u8; 16 * 1024];
                let _ = socket.read(&mut buffer).await;
                match how {
                    Break::BeforeAnswer => {}
                    Break::InsideBody => {
                        let _ =
                            socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n{\"id\":").await;
                    }
                    Break::Never => {
                        let _ = socket.read(&mut buffer).await;
                    }
                }
            });
        }
    });
    Ok(url)
}

#[tokio::test]
async fn whatever_breaks_after_sending_is_unknown_for_a_write_and_transient_for_a_read() -> anyhow::Result<()>
{
    let cases = [
        (Break::BeforeAnswer, "stripe.connection_lost"),
        (Break::InsideBody, "stripe.answer_lost"),
        (Break::Never, "stripe.timeout"),
    ];
    for (how, code) in cases {
        let client = stripe(&breaking_server(how).await?, "sk_test_a")?;
        let mut call = call();
        if matches!(how, Break::Never) {
            call.timeout = Duration::from_millis(300);
        }

        let read = find_transfer(&client, &call, &instruction()?).await.err();
        assert_eq!(read.map(|failure| failure.class), Some(Class::Transient), "{how:?}");
        assert!(!call.may_have_left(), "{how:?}: a read has no effect");

        let Err(write) = create_transfer(&client, &call, &instruction()?).await else {
            anyhow::bail!("{how:?}: believed");
        };
        assert_eq!((write.class, write.code.as_ref()), (Class::Unknown, code), "{how:?}");
        assert!(call.may_have_left() && !write.detail.contains("127.0.0.1/v1"), "{how:?}");
    }
    Ok(())
}

#[tokio::test]
async fn requests_share_a_connection() -> anyhow::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/", listener.local_addr()?);
    let body = list(&[], false).to_string();
    tokio::spawn(async move {
        // One connection is accepted and no other: a second one would wait until the call's timeout.
        let Ok((mut socket, _)) = listener.accept().await else { return };
        let mut buffer = [0_u8; 16 * 1024];
        while socket.read(&mut buffer).await.is_ok_and(|bytes| bytes > 0) {
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            let _ = socket.write_all(head.as_bytes()).await;
        }
        drop(listener);
    });
    let client = stripe(&url, "sk_test_a")?;
    for _ in 0..3 {
        find_transfer(&client, &call(), &instruction()?).await?;
    }
    Ok(())
}
