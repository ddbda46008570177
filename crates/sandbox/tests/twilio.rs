//! Twilio Conversations: identity keeps writes single, closed is for good, and the journal says who overlapped whom.

mod stand;

use anyhow::{Context, Result};
use backline_sandbox::{Config, TWILIO_ACCOUNT_SID};
use reqwest::Method;
use serde_json::{Value, json};
use stand::{Stand, TWILIO_KEY, answer, header};

async fn post(stand: &Stand, path: &str, form: &[(&str, &str)]) -> Result<(u16, Value)> {
    answer(stand.twilio(Method::POST, path, form)).await
}

async fn get(stand: &Stand, path: &str) -> Result<(u16, Value)> {
    answer(stand.twilio(Method::GET, path, &[])).await
}

/// Status and error code; a deletion has no body.
async fn remove(stand: &Stand, path: &str) -> Result<(u16, Value)> {
    let response = stand.twilio(Method::DELETE, path, &[]).send().await?;
    let status = response.status().as_u16();
    let text = response.text().await?;
    let body: Value = if text.is_empty() { Value::Null } else { serde_json::from_str(&text)? };
    Ok((status, body["code"].clone()))
}

async fn join(stand: &Stand, sid: &str, identity: &str) -> Result<(u16, Value)> {
    answer(stand.join(sid, identity)).await
}

fn code((status, body): (u16, Value)) -> (u16, u64) {
    (status, body["code"].as_u64().unwrap_or(0))
}

#[tokio::test]
async fn a_name_an_identity_and_a_sid_are_used_once() -> Result<()> {
    let stand = Stand::default().await?;
    let sid = stand.conversation("case/17 a+b&c").await?;
    assert_eq!(code(post(&stand, "", &[("UniqueName", "case/17 a+b&c")]).await?), (409, 50353));
    assert_eq!(code(post(&stand, "", &[("UniqueName", &sid)]).await?), (400, 50390));
    assert_eq!(get(&stand, "/case%2F17%20a+b&c").await?.1["sid"], json!(sid));

    let (status, member) = join(&stand, &sid, "user-1").await?;
    assert_eq!((status, &member["identity"]), (201, &json!("user-1")));
    assert_eq!(code(join(&stand, &sid, "user-1").await?), (409, 50433));
    let path = format!("/{sid}/Participants/{}", member["sid"].as_str().context("sid")?);
    assert_eq!(remove(&stand, &path).await?.0, 204);
    assert_eq!(remove(&stand, &path).await?, (404, json!(20404)));
    // A second membership is another one.
    assert_ne!(join(&stand, &sid, "user-1").await?.1["sid"], member["sid"]);
    Ok(())
}

#[tokio::test]
async fn closed_is_for_good_and_deleting_takes_everything() -> Result<()> {
    let stand = Stand::default().await?;
    let sid = stand.conversation("a").await?;
    let path = format!("/{sid}");
    join(&stand, &sid, "user-1").await?;
    for state in ["inactive", "active", "closed"] {
        assert_eq!(post(&stand, &path, &[("State", state)]).await?.1["state"], json!(state));
    }
    for state in ["active", "closed"] {
        assert_eq!(code(post(&stand, &path, &[("State", state)]).await?), (400, 50377));
    }
    assert_eq!(code(join(&stand, &sid, "user-2").await?), (400, 50377));
    assert_eq!(remove(&stand, &format!("{path}/Participants/user-1")).await?, (400, json!(50377)));

    assert_eq!(remove(&stand, &path).await?.0, 204);
    assert_eq!(remove(&stand, &path).await?, (404, json!(20404)));
    assert_eq!(code(get(&stand, &format!("{path}/Participants")).await?), (404, 20404));
    let (_, report) = stand.get("/twilio").await?;
    assert_eq!(report["deleted"][0]["states"], json!(["active", "inactive", "active", "closed"]));
    // The name is free again.
    assert_ne!(stand.conversation("a").await?, sid);
    Ok(())
}

#[tokio::test]
async fn an_address_pair_belongs_to_one_open_conversation() -> Result<()> {
    let stand = Stand::default().await?;
    let (one, two) = (stand.conversation("one").await?, stand.conversation("two").await?);
    let pair = [("MessagingBinding.Address", "+15550001"), ("MessagingBinding.ProxyAddress", "+15559999")];
    let bind = async |sid: &str| post(&stand, &format!("/{sid}/Participants"), &pair).await;
    let (status, member) = bind(&one).await?;
    assert_eq!((status, &member["messaging_binding"]["address"]), (201, &json!("+15550001")));
    assert_eq!(code(bind(&one).await?), (409, 50437));
    assert_eq!(code(bind(&two).await?), (409, 50416));
    post(&stand, &format!("/{one}"), &[("State", "closed")]).await?;
    assert_eq!(bind(&two).await?.0, 201);
    assert_eq!(code(post(&stand, &format!("/{two}/Participants"), &[pair[0]]).await?), (400, 20001));
    Ok(())
}

#[tokio::test]
async fn pages_follow_each_other_and_limits_hold() -> Result<()> {
    let stand = Stand::default().await?;
    let sid = stand.conversation("big").await?;
    for n in 0..1_000 {
        assert_eq!(join(&stand, &sid, &format!("user-{n}")).await?.0, 201);
    }
    assert_eq!(code(join(&stand, &sid, "one more").await?), (400, 50417));
    let mut url = format!("{}/v1/Conversations/{sid}/Participants?PageSize=100", stand.url);
    let (mut pages, mut seen) = (0, std::collections::BTreeSet::new());
    loop {
        let (status, page) = answer(stand.client.get(&url).basic_auth(TWILIO_KEY, Some("secret"))).await?;
        assert_eq!((status, &page["meta"]["page"]), (200, &json!(pages)));
        let members = page["participants"].as_array().context("participants")?;
        seen.extend(members.iter().filter_map(|member| member["identity"].as_str().map(str::to_owned)));
        pages += 1;
        match page["meta"]["next_page_url"].as_str() {
            Some(next) => next.clone_into(&mut url),
            None => break,
        }
    }
    assert_eq!((pages, seen.len()), (10, 1_000));
    assert_eq!(code(get(&stand, &format!("/{sid}/Participants?PageSize=101")).await?), (400, 20001));
    Ok(())
}

#[tokio::test]
async fn answers_carry_the_schema_and_nothing_else() -> Result<()> {
    let stand = Stand::default().await?;
    let form = [("UniqueName", "a"), ("State", "active"), ("Timers.Inactive", "PT1M")];
    let (_, conversation) = post(&stand, "", &form).await?;
    let names = |value: &Value| value.as_object().map(|fields| fields.keys().cloned().collect::<Vec<_>>());
    let expected = [
        "account_sid",
        "attributes",
        "bindings",
        "chat_service_sid",
        "date_created",
        "date_updated",
        "friendly_name",
        "links",
        "messaging_service_sid",
        "sid",
        "state",
        "timers",
        "unique_name",
        "url",
    ];
    assert_eq!(names(&conversation).context("object")?, expected);
    assert_eq!(conversation["account_sid"], TWILIO_ACCOUNT_SID);
    let sid = conversation["sid"].as_str().context("sid")?;
    let (_, member) = join(&stand, sid, "user-1").await?;
    let expected = [
        "account_sid",
        "attributes",
        "conversation_sid",
        "date_created",
        "date_updated",
        "identity",
        "last_read_message_index",
        "last_read_timestamp",
        "messaging_binding",
        "role_sid",
        "sid",
        "url",
    ];
    assert_eq!(names(&member).context("object")?, expected);
    assert_eq!(code(post(&stand, "", &[("Timers.Inactive", "PT1M")]).await?), (400, 50382));
    assert_eq!(code(post(&stand, "", &[("Uniquename", "b")]).await?), (400, 20001));
    assert_eq!(code(post(&stand, "", &[("State", "archived")]).await?), (400, 20001));
    // The timer moves it on.
    stand.control(json!({"action": "clock_forward", "by": "2m"})).await?;
    assert_eq!(get(&stand, &format!("/{sid}")).await?.1["state"], "inactive");
    Ok(())
}

#[tokio::test]
async fn only_a_key_is_let_in() -> Result<()> {
    let known = format!("{TWILIO_KEY}:secret");
    let config = Config { api_keys: vec!["sk_test_stand".to_owned(), known], ..Config::default() };
    let stand = Stand::start(config).await?;
    let url = format!("{}/v1/Conversations", stand.url);
    let client = &stand.client;
    for refused in [
        client.get(&url),
        client.get(&url).bearer_auth("sk_test_stand"),
        client.get(&url).basic_auth(TWILIO_KEY, Some("other")),
        client.get(&url).basic_auth("user", Some("secret")),
    ] {
        assert_eq!(code(answer(refused).await?), (401, 20003));
    }
    assert_eq!(get(&stand, "").await?.0, 200);
    assert_eq!(stand.get("/v1/balance").await?.0, 200);
    Ok(())
}

#[tokio::test]
async fn the_console_changes_things_too() -> Result<()> {
    let stand = Stand::default().await?;
    let sid = stand.conversation("a").await?;
    let member = |identity: &str, present: bool| json!({"action": "participant", "conversation": "a", "identity": identity, "present": present});
    assert_eq!(stand.control(member("user-1", true)).await?["touched"], 1);
    assert_eq!(code(join(&stand, &sid, "user-1").await?), (409, 50433));
    stand.control(member("user-1", false)).await?;
    let becomes = |state: &str| json!({"action": "conversation", "id": sid, "becomes": state});
    stand.control(becomes("closed")).await?;
    assert_eq!(code(join(&stand, &sid, "user-1").await?), (400, 50377));
    stand.control(becomes("deleted")).await?;
    assert_eq!(code(get(&stand, &format!("/{sid}")).await?), (404, 20404));
    let reply = stand.twilio(Method::GET, "", &[]).send().await?;
    assert_eq!(header(&reply, "twilio-concurrent-requests").as_deref(), Some("1"));
    // Stripe's books know nothing of it.
    assert_eq!(stand.get("/ledger").await?.1["applied_without_operation"], 0);
    Ok(())
}
