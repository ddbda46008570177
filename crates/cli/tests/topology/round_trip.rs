//! Show, compare, make true.

use crate::support::{Setup, declaration, declared};
use anyhow::Result;
use backline_broker::{SubscriptionSpec, Topology};
use serde_json::{Value, json};

fn ids(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(|one| one["id"].as_str()).collect()
}

fn fields(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(|one| one["field"].as_str()).collect()
}

#[tokio::test]
async fn what_is_declared_is_made_once_and_nothing_else_is_touched() -> Result<()> {
    let setup = Setup::new().await?;
    setup.broker.ensure_topic("foreign").await?;
    setup.broker.ensure_subscription(&SubscriptionSpec::new("foreign.reader", "foreign")).await?;
    let file = declaration(&declared())?;
    let all = ["events", "events.letters.dead", "events.letters.dead.kept", "events.letters"];

    let diff = setup.backline(&["topology", "diff", "--declaration", &file]).await?;
    assert_eq!((diff.code, ids(&diff.json["differences"])), (Some(1), all.to_vec()), "{diff:?}");
    let apply = setup.backline(&["topology", "apply", "--declaration", &file]).await?;
    assert_eq!((apply.code, ids(&apply.json["done"])), (Some(0), all.to_vec()), "{apply:?}");

    let diff = setup.backline(&["topology", "diff", "--declaration", &file]).await?;
    assert_eq!((diff.code, &diff.json["differences"]), (Some(0), &json!([])), "{diff:?}");
    let again = setup.backline(&["topology", "apply", "--declaration", &file]).await?;
    assert_eq!((again.code, &again.json), (Some(0), &json!({"done": []})));
    setup.broker.probe_subscription("foreign.reader").await?;
    Ok(())
}

#[tokio::test]
async fn what_is_shown_is_a_declaration_itself() -> Result<()> {
    let setup = Setup::new().await?;
    let show = setup.backline(&["topology", "show", "--declaration", &declaration(&declared())?]).await?;
    assert_eq!(show.code, Some(0), "{show:?}");
    let whole: Topology = serde_json::from_value(show.json)?;
    assert_eq!(whole.all_subscriptions(), declared().all_subscriptions());
    let again = setup.backline(&["topology", "show", "--declaration", &declaration(&whole)?]).await?;
    assert_eq!(serde_json::from_value::<Topology>(again.json)?, whole);
    Ok(())
}

#[tokio::test]
async fn what_is_fixed_at_creation_is_refused_by_name_with_the_safe_way() -> Result<()> {
    let setup = Setup::new().await?;
    setup.broker.ensure_topic("events").await?;
    let other = SubscriptionSpec {
        filter: Some("attributes:x".to_owned()),
        ordered: false,
        ..SubscriptionSpec::new("events.letters", "events")
    };
    setup.broker.ensure_subscription(&other).await?;
    let args = ["topology", "apply", "--declaration", &declaration(&declared())?];

    let apply = setup.backline(&args).await?;
    let last = apply.json["done"].as_array().and_then(|done| done.last()).cloned().unwrap_or_default();
    assert_eq!((apply.code, &last["id"]), (Some(1), &json!("events.letters")), "{apply:?}");
    assert_eq!(fields(&last["refused"]), ["filter", "ordered"]);
    assert_eq!(fields(&last["updated"]), ["dead_letter"], "what can be updated is");
    let advice = apply.json["advice"][0].as_str().unwrap_or_default();
    assert!(advice.contains("filter, ordered") && advice.contains("-X DELETE"), "{advice}");

    let again = setup.backline(&args).await?;
    let first = &again.json["done"][0];
    assert_eq!((again.code, &first["updated"]), (Some(1), &json!([])), "refused again, nothing else to do");
    let diff = setup.backline(&["topology", "diff", "--declaration", &declaration(&declared())?]).await?;
    assert_eq!(fields(&diff.json["differences"][0]["fields"]), ["filter", "ordered"]);
    Ok(())
}
