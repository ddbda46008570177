//! The participant list, read to its end or not at all.

use backline_failure::Class;
use backline_sandbox::Fault;
use backline_twilio::list_participants;
use serde_json::json;

use crate::sandbox::{Provider, fresh};
use crate::stand_in::{StandIn, answer, call, member, room, twilio};

#[tokio::test]
async fn every_page_is_read_and_a_lost_one_is_no_short_list() -> anyhow::Result<()> {
    let provider = Provider::honest().await?;
    let (client, sid) = (&provider.client, provider.conversation("a").await?);
    for n in 0..250 {
        provider.member(&sid, &format!("user-{n}")).await?;
    }
    let listed = list_participants(client, &fresh(), &sid).await?.unwrap_or_default();
    let mut identities: Vec<_> = listed.iter().filter_map(|member| member.identity.as_deref()).collect();
    identities.sort_unstable();
    identities.dedup();
    assert_eq!((listed.len(), identities.len()), (250, 250));

    provider.lie("participant.list", Fault::Hide { span: std::time::Duration::ZERO });
    let rule = backline_sandbox::parse_faults(
        r#"{"match": {"kind": "participant.list"}, "when": {"nth": [2]}, "fault": {"kind": "truncated"}}"#,
    );
    provider.sandbox.add_faults(rule.map_err(anyhow::Error::msg)?);
    let failed = list_participants(client, &fresh(), &sid).await.err();
    assert_eq!(failed.map(|failure| failure.class), Some(Class::Transient));
    Ok(())
}

#[tokio::test]
async fn credentials_follow_no_page_to_another_host() -> anyhow::Result<()> {
    let sid = room()?;
    let page = |n: usize, next: Option<String>| json!({"participants": [member(n, sid.as_str(), &format!("user-{n}"))], "meta": {"next_page_url": next}});
    let elsewhere =
        format!("https://evil.example/v1/Conversations/{sid}/Participants?PageSize=100&Page=1&PageToken=PT1");
    let server =
        StandIn::serve(vec![answer(200, page(1, Some(elsewhere))), answer(200, page(2, None))]).await?;
    let listed = list_participants(&twilio(&server.url)?, &call(), &sid).await?;
    assert_eq!(listed.map(|listed| listed.len()), Some(2));
    let asked: Vec<String> = server.seen().iter().map(|seen| seen.uri.to_string()).collect();
    let path = format!("/v1/Conversations/{sid}/Participants?PageSize=100");
    assert_eq!(asked, [path.clone(), format!("{path}&Page=1&PageToken=PT1")]);
    Ok(())
}

#[tokio::test]
async fn a_list_that_cannot_be_believed_is_none() -> anyhow::Result<()> {
    let sid = room()?;
    let own = format!("http://x/v1/Conversations/{sid}/Participants?Page=1");
    let meta = |next: &str| json!({"next_page_url": next});
    let other = "CHffffffffffffffffffffffffffffffff";
    let cases = [
        (json!({"participants": [member(1, other, "user-1")], "meta": meta(&own)}), "twilio.answer_differs"),
        (json!({"participants": [{"sid": "MB1"}], "meta": meta(&own)}), "twilio.unreadable_answer"),
        (json!({"participants": []}), "twilio.unreadable_answer"),
        (json!({"participants": [], "meta": meta("http://x/v1/Credentials?Page=1")}), "twilio.foreign_page"),
        // The same page for ever.
        (json!({"participants": [], "meta": meta(&own)}), "twilio.list_too_long"),
    ];
    for (body, code) in cases {
        let server = StandIn::serve(vec![answer(200, body)]).await?;
        let Err(failure) = list_participants(&twilio(&server.url)?, &call(), &sid).await else {
            anyhow::bail!("{code}: believed");
        };
        assert_eq!((failure.class, failure.code.as_ref()), (Class::Transient, code));
        assert!(server.seen().len() <= 20, "{code}");
    }
    Ok(())
}
