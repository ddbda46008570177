//! Permissions, from a stand-in that answers what the service answers: an emulator has none.

use crate::support::Setup;
use anyhow::Result;
use backline_broker::{Broker, BrokerConfig, Grant, Resource};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

const AGENT: &str = "serviceAccount:service-4711@gcp-sa-pubsub.iam.gserviceaccount.com";

/// What the service would say at a path.
fn answer(path: &str) -> (u16, String) {
    let policy = |role| format!(r#"{{"bindings": [{{"role": "{role}", "members": ["{AGENT}"]}}]}}"#);
    match path.split('?').next().unwrap_or_default() {
        "/v1/projects/project/topics/dead:getIamPolicy" => (200, policy("roles/pubsub.publisher")),
        "/v1/projects/project/topics/bare:getIamPolicy" => (200, r#"{"etag": "ACAB"}"#.to_owned()),
        "/v1/projects/project/subscriptions/reader:getIamPolicy" => (200, policy("roles/pubsub.viewer")),
        "/v1/projects/project/topics/dead:testIamPermissions" => {
            (200, r#"{"permissions": ["pubsub.topics.publish"]}"#.to_owned())
        }
        "/v1/projects/project/topics/bare:testIamPermissions" => (200, "{}".to_owned()),
        _ => (
            403,
            r#"{"error": {"code": 403, "message": "not yours", "status": "PERMISSION_DENIED"}}"#.to_owned(),
        ),
    }
}

/// Answers one request and closes.
async fn serve(stream: TcpStream) -> Result<()> {
    let mut stream = BufReader::new(stream);
    let (mut first, mut length) = (String::new(), 0_usize);
    stream.read_line(&mut first).await?;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse()?;
        }
    }
    stream.read_exact(&mut vec![0; length]).await?;
    let (code, body) = answer(first.split(' ').nth(1).unwrap_or_default());
    let head = format!(
        "HTTP/1.1 {code} x\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await?;
    Ok(stream.shutdown().await?)
}

async fn service() -> Result<Broker> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?.to_string();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    Ok(Broker::connect(BrokerConfig::new("project", Some(address))).await?)
}

#[tokio::test]
async fn the_brokers_own_account_is_looked_for_on_the_topic_and_the_subscription() -> Result<()> {
    let broker = service().await?;
    assert_eq!(broker.may_forward_to("dead").await?, Grant::Given);
    assert_eq!(broker.may_forward_to("bare").await?, Grant::NotSeen);
    assert_eq!(broker.may_forward_from("reader").await?, Grant::NotSeen, "viewing is not acknowledging");
    assert_eq!(broker.may_forward_from("foreign").await?, Grant::Hidden("not yours".to_owned()));
    Ok(())
}

#[tokio::test]
async fn what_these_credentials_may_is_asked_of_the_service() -> Result<()> {
    let broker = service().await?;
    let publish = ["pubsub.topics.publish"];
    assert_eq!(broker.held(Resource::Topic, "dead", &publish).await?, Some(vec![publish[0].to_owned()]));
    assert_eq!(broker.held(Resource::Topic, "bare", &publish).await?, Some(Vec::new()));
    Ok(())
}

#[tokio::test]
async fn an_emulator_has_no_permissions_and_nothing_is_said_of_them() -> Result<()> {
    let broker = Setup::new().await?.broker;
    assert_eq!(broker.may_forward_to("events").await?, Grant::Meaningless);
    assert_eq!(broker.held(Resource::Topic, "events", &["pubsub.topics.publish"]).await?, None);
    Ok(())
}
