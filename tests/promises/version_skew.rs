//! A newer build takes over what an older one left, in whatever state it was.
//!
//! Predicate: everything open that can end does end, under the identity, inputs and key it had, and with at most one
//! effect; what is a person's, parked or paused stays as it was; history does not change.
//!
//! The races: the older version's processes all died at one moment, with requests at the providers, serial keys held,
//! generations asked for and events half handed over (`make-fixture`); and the same database restored elsewhere.

use backline_promises::check::{self, Expected};
use backline_promises::{Fate, Fixture, PAYMENTS, RELAY, SCRIPTED, Stack, eventually};
use serde_json::Value;
use uuid::Uuid;

/// Every version with a fixture, oldest first.
const VERSIONS: &[&str] = &["v0.1.0"];

/// What no version may change, as sorted lines.
const IDENTITIES: &str = "select format('%s %s %s %s %s', id, organization, kind, occurrence, operation_key) from backline.operation
    union select format('%s %s %s %s %s', id, organization, kind, occurrence, operation_key) from backline.operation_history
    union select format('%s %s %s 0 %s', operation_id, organization, kind, operation_key) from backline.intake order by 1";
const OUTCOMES: &str =
    "select format('%s %s %s %s %s %s %s', id, generation, outcome, code, token, finished_at, input)
    from backline.operation_history order by 1";
/// Inputs of what is open or asked for: they are frozen.
const INPUTS: &str = "select format('%s %s', id, input) from backline.operation where mode = 'command'
    union select format('%s %s', operation_id, input) from backline.intake where kind <> 'effect.desired'
    union select format('%s %s', id, input) from backline.operation_history order by 1";
/// A person's turn.
const STUCK: &str = "select format('%s %s %s %s %s %s', id, state, attempt, submission, failure_code, failed_at)
    from backline.operation where state in ('dead', 'manual')
    union all select format('%s %s %s', id, parked_at, parked_reason) from backline.outbox where parked_at is not null
    union all select format('%s %s %s %s', event_id, consumer, state, reason) from backline.parked_delivery order by 1";
const PUBLISHED: &str = "select id from backline.outbox_published";
const UNPUBLISHED: &str = "select id from backline.outbox where parked_at is null";

async fn lines(stack: &Stack, sql: &'static str) -> anyhow::Result<Vec<String>> {
    Ok(sqlx::query_scalar(sql).fetch_all(stack.pool()).await?)
}

async fn ids(stack: &Stack, sql: &'static str) -> anyhow::Result<Vec<Uuid>> {
    Ok(sqlx::query_scalar(sql).fetch_all(stack.pool()).await?)
}

/// Operations and requests of a fate that have not ended.
async fn open(stack: &Stack, fate: Fate) -> anyhow::Result<Vec<String>> {
    let sql = "select operation_key || ' ' || state from backline.operation where operation_key like $1 || '%'
        union all select operation_key || ' asked for' from backline.intake where operation_key like $1 || '%'";
    Ok(sqlx::query_scalar(sql).bind(fate.prefix()).fetch_all(stack.pool()).await?)
}

/// How the last generations of a fate's operations ended.
async fn ends(stack: &Stack, fate: Fate) -> anyhow::Result<Vec<String>> {
    let sql = "select distinct on (id) operation_key || ' ' || outcome from backline.operation_history
        where operation_key like $1 || '%' order by id, generation desc";
    Ok(sqlx::query_scalar(sql).bind(fate.prefix()).fetch_all(stack.pool()).await?)
}

/// Today's programs over an earlier version's database, none of them started but broker and provider.
async fn taken_over(version: &str) -> anyhow::Result<Stack> {
    let plan = Stack::builder().restored(Fixture::read(version)?).without_relay().relay_later(RELAY);
    plan.later(SCRIPTED, SCRIPTED).later(PAYMENTS, PAYMENTS).start().await
}

async fn everything_open_ends(version: &str, mut stack: Stack) -> anyhow::Result<()> {
    let (identities, outcomes) = (lines(&stack, IDENTITIES).await?, lines(&stack, OUTCOMES).await?);
    let (inputs, stuck) = (lines(&stack, INPUTS).await?, lines(&stack, STUCK).await?);
    let (published, unpublished) = (ids(&stack, PUBLISHED).await?, ids(&stack, UNPUBLISHED).await?);
    let (ending, paused) = (open(&stack, Fate::Ends).await?, open(&stack, Fate::Paused).await?);
    let staying = open(&stack, Fate::Stays).await?;
    for (what, rows) in
        [("ending", &ending), ("paused", &paused), ("staying", &staying), ("outcomes", &outcomes)]
    {
        anyhow::ensure!(!rows.is_empty(), "{version} has nothing {what}");
    }

    stack.operator(&["migrate"])?;
    let again: Value = serde_json::from_str(&stack.operator(&["migrate", "--json"])?)?;
    let applied = again.as_array().map(Vec::as_slice).unwrap_or_default();
    assert!(applied.len() >= 7 && applied.iter().all(|one| one["now"] == false), "{again}");

    // Workers first, so that what the relay hands over meets their subscriptions.
    for program in [SCRIPTED, PAYMENTS, RELAY] {
        stack.member(program)?.start()?;
    }
    let mut left = Vec::new();
    let ended = eventually("everything that can end to end", async || {
        left = open(&stack, Fate::Ends).await?;
        Ok(left.is_empty()
            && stack.count("select count(*) from backline.outbox where parked_at is null").await? == 0)
    });
    ended.await.map_err(|error| error.context(format!("{version}: {left:?}")))?;
    // What came as an event may be on its way from the broker still.
    let ordered = "select count(*) from backline.operation_history where operation_key in ('ends-published', 'ends-unpublished') and outcome = 'succeeded' and kind <> 'stripe.settlement'";
    eventually("the events to be carried out", async || Ok(stack.count(ordered).await? == 3)).await?;
    for end in ends(&stack, Fate::Ends).await? {
        assert!(end.ends_with(" succeeded"), "{version}: {end}");
    }

    // Nobody decided what is a person's to decide, or went on with what is paused.
    assert_eq!(lines(&stack, STUCK).await?, stuck, "{version}");
    assert_eq!(open(&stack, Fate::Paused).await?.len(), paused.len(), "{version}");
    assert_eq!(open(&stack, Fate::Stays).await?.len(), staying.len(), "{version}");
    let scope = "select name from backline.pause where scope = 'organization'";
    for organization in lines(&stack, scope).await? {
        let args = ["resume", "organization", &organization, "--reason", "test", "--actor", "operator"];
        stack.operator(&args)?;
    }

    eventually("the wish to cancel to be granted", async || {
        Ok(open(&stack, Fate::Cancelled).await?.is_empty())
    })
    .await?;
    for end in ends(&stack, Fate::Cancelled).await? {
        assert!(end.ends_with(" cancelled"), "{version}: {end}");
    }

    let number = |sql| stack.count(sql);
    let expected = Expected {
        committed: [published.clone(), unpublished.clone()].concat(),
        published_before: published,
        stuck: number("select count(*) from backline.operation where state in ('dead', 'manual')").await?,
        parked: number("select count(*) from backline.outbox where parked_at is not null").await?,
        waiting: number("select count(*) from backline.intake where kind = 'effect.spare'").await?,
        ..Expected::recovered()
    };
    check::settled(&stack, &expected).await?;
    let log = stack.published()?;
    for id in unpublished {
        assert!(log.iter().any(|line| line["attributes"]["ce-id"] == id.to_string()), "{version}: {id}");
    }
    for (what, before, now) in [
        ("identity", identities, lines(&stack, IDENTITIES).await?),
        ("outcome", outcomes, lines(&stack, OUTCOMES).await?),
        ("input", inputs, lines(&stack, INPUTS).await?),
    ] {
        for line in before {
            assert!(now.contains(&line), "{version}: this {what} is gone or changed: {line}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn todays_build_ends_what_an_earlier_version_left_open() -> anyhow::Result<()> {
    for version in VERSIONS {
        let stack = taken_over(version).await?;
        // As on the server where the earlier version ran: the incarnation is the same.
        let sql = "update backline.incarnation i set system_identifier = c.system_identifier, timeline = c.timeline from backline.current_incarnation() c";
        sqlx::raw_sql(sql).execute(stack.pool()).await?;
        everything_open_ends(version, stack).await?;
    }
    Ok(())
}

#[tokio::test]
async fn an_earlier_versions_database_that_was_restored_elsewhere_doubles_nothing() -> anyhow::Result<()> {
    for version in VERSIONS {
        let stack = taken_over(version).await?;
        everything_open_ends(version, stack).await?;
    }
    Ok(())
}
