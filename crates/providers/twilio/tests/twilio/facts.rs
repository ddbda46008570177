//! What is already so is told apart from what was done, because only the caller knows which was wanted.

use backline_failure::Class;
use backline_sandbox::{Action, ConversationState};
use backline_twilio::{
    Addition, ConversationRef, Creation, Deletion, NewParticipant, Removal, State, StateChange, Who,
    add_participant, create_conversation, delete_conversation, fetch_conversation, list_participants,
    remove_participant, set_state,
};

use crate::sandbox::{Provider, chat, fresh, named};

#[tokio::test]
async fn a_conversation_is_made_once_under_its_name_and_found_by_it() -> anyhow::Result<()> {
    let provider = Provider::honest().await?;
    let client = &provider.client;
    let name = "organization 7/case +17 & co";
    let by_name = ConversationRef::UniqueName(name.to_owned());
    assert_eq!(fetch_conversation(client, &fresh(), &by_name).await?, None);
    let sid = provider.conversation(name).await?;
    assert_eq!(create_conversation(client, &fresh(), &named(name)).await?, Creation::NameTaken);

    let found = fetch_conversation(client, &fresh(), &by_name).await?;
    let by_sid = fetch_conversation(client, &fresh(), &ConversationRef::Sid(sid.clone())).await?;
    assert!(found.as_ref().is_some_and(|found| found.sid == sid && found.state == State::Active));
    assert_eq!(found, by_sid);
    Ok(())
}

#[tokio::test]
async fn a_member_joins_and_leaves_once() -> anyhow::Result<()> {
    let provider = Provider::honest().await?;
    let (client, sid) = (&provider.client, provider.conversation("a").await?);
    let member = provider.member(&sid, "user-1").await?;
    let again = add_participant(client, &fresh(), &sid, &chat("user-1")).await?;
    assert_eq!(again, Addition::AlreadyPresent);

    assert_eq!(remove_participant(client, &fresh(), &sid, &member).await?, Removal::Removed);
    let second = provider.member(&sid, "user-1").await?;
    // A late removal of the first membership does not touch the second.
    assert_eq!(remove_participant(client, &fresh(), &sid, &member).await?, Removal::AlreadyAbsent);
    let listed = list_participants(client, &fresh(), &sid).await?.unwrap_or_default();
    assert_eq!(listed.iter().map(|member| &member.sid).collect::<Vec<_>>(), [&second]);
    assert_eq!(listed[0].who(), Some(chat("user-1").who));
    Ok(())
}

#[tokio::test]
async fn an_address_bound_elsewhere_is_for_a_person() -> anyhow::Result<()> {
    let provider = Provider::honest().await?;
    let client = &provider.client;
    let (one, two) = (provider.conversation("one").await?, provider.conversation("two").await?);
    let who = Who::Messaging { address: "+15550001".to_owned(), proxy_address: "+15559999".to_owned() };
    let new = NewParticipant { who: who.clone(), attributes: Some("{}".to_owned()) };
    let Addition::Added(member) = add_participant(client, &fresh(), &one, &new).await? else {
        anyhow::bail!("not added");
    };
    assert_eq!(member.who(), Some(who));
    assert_eq!(add_participant(client, &fresh(), &one, &new).await?, Addition::AlreadyPresent);
    let Err(failure) = add_participant(client, &fresh(), &two, &new).await else {
        anyhow::bail!("added twice");
    };
    let summary = (failure.class, failure.code.as_ref());
    assert_eq!(summary, (Class::Rejected, "twilio.address_bound_elsewhere"));
    assert!(!format!("{failure} {:?}", failure.evidence).contains("5550001"));
    Ok(())
}

#[tokio::test]
async fn closed_stays_closed_and_only_deletion_is_taken() -> anyhow::Result<()> {
    let provider = Provider::honest().await?;
    let (client, sid) = (&provider.client, provider.conversation("a").await?);
    let member = provider.member(&sid, "user-1").await?;
    for state in [State::Inactive, State::Active, State::Closed] {
        let changed = set_state(client, &fresh(), &sid, state).await?;
        assert!(matches!(changed, StateChange::Changed(found) if found.state == state));
    }
    for state in [State::Closed, State::Active] {
        assert_eq!(set_state(client, &fresh(), &sid, state).await?, StateChange::AlreadyClosed);
    }
    let joined = add_participant(client, &fresh(), &sid, &chat("user-2")).await?;
    assert_eq!(joined, Addition::ConversationClosed);
    let left = remove_participant(client, &fresh(), &sid, &member).await?;
    assert_eq!(left, Removal::ConversationClosed);
    assert_eq!(delete_conversation(client, &fresh(), &sid).await?, Deletion::Deleted);
    Ok(())
}

#[tokio::test]
async fn what_is_gone_is_gone_for_every_call() -> anyhow::Result<()> {
    let provider = Provider::honest().await?;
    let (client, sid) = (&provider.client, provider.conversation("a").await?);
    let member = provider.member(&sid, "user-1").await?;
    let deleted = ConversationState::Deleted;
    provider.control(Action::Conversation { id: sid.to_string(), becomes: deleted, at_ms: None });

    assert_eq!(fetch_conversation(client, &fresh(), &ConversationRef::Sid(sid.clone())).await?, None);
    assert_eq!(list_participants(client, &fresh(), &sid).await?, None);
    let joined = add_participant(client, &fresh(), &sid, &chat("user-2")).await?;
    assert_eq!(joined, Addition::ConversationAbsent);
    assert_eq!(remove_participant(client, &fresh(), &sid, &member).await?, Removal::AlreadyAbsent);
    assert_eq!(set_state(client, &fresh(), &sid, State::Closed).await?, StateChange::Absent);
    assert_eq!(delete_conversation(client, &fresh(), &sid).await?, Deletion::AlreadyAbsent);
    Ok(())
}
