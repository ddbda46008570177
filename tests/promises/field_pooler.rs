//! Field case 37: <https://github.com/pgbouncer/pgbouncer/issues/617>. Through a pooler in transaction mode session state
//! does not hold. What cannot work there says so, and what can work there works.

use anyhow::ensure;
use backline_promises::check::{self, Expected};
use backline_promises::{Pooler, RELAY, SCRIPTED, Stack, backline, eventually, http};
use serde_json::{Value, json};
use uuid::Uuid;

/// What every program says, wherever it meets the pooler.
const REMEDY: &str = "DATABASE_URL leads to a transaction pooler: let it lead to PostgreSQL itself or to a pooler in session mode. \
    BACKLINE_POLLING_ONLY=true (workers) and BACKLINE_RELAY_DOORBELL=false (relay) do without start-up parameters";
/// As in its documentation for poolers.
const POLLING: [(&str, &str); 2] = [("BACKLINE_POLLING_ONLY", "true"), ("BACKLINE_RELAY_DOORBELL", "false")];

#[tokio::test]
async fn a_pooler_that_cannot_work_is_refused_at_start_with_the_remedy_and_nothing_is_lost()
-> anyhow::Result<()> {
    let mut stack = Stack::builder().behind_proxy().worker(SCRIPTED).start().await?;
    for program in [RELAY, SCRIPTED] {
        stack.member(program)?.kill9()?;
    }
    let organization = Uuid::now_v7();
    let event = stack.emit("ThingOrdered", organization, "a", json!({"key": "a", "order": {}})).await?;
    let id = stack.enqueue("effect.keyed", organization, "b", json!({})).await?;
    let direct = stack.server().port();
    stack.proxy()?.lead_to(Pooler::start(direct, false)?.port());
    for program in [RELAY, SCRIPTED] {
        let (code, text) = stack.member(program)?.refusal(&[])?;
        ensure!(code == 1 && text.contains(REMEDY), "{program} ended with {code}: {text}");
        ensure!(text.contains("unsupported startup parameter: options"), "{program}: {text}");
        // Without start-up parameters it gets further, and finds its prepared statements gone.
        let (code, text) = stack.member(program)?.refusal(&POLLING)?;
        ensure!(code == 1 && text.contains(REMEDY), "{program} ended with {code}: {text}");
        ensure!(text.contains("does not exist"), "{program}: {text}");
    }
    for command in ["migrate", "doctor"] {
        let answer = backline(&stack.proxied_url()?, &[], &[command])?;
        ensure!(answer.code == Some(1) && answer.seen().contains(REMEDY), "{command}: {answer:?}");
    }
    stack.proxy()?.lead_to(direct);
    for program in [RELAY, SCRIPTED] {
        stack.member(program)?.start()?;
    }
    stack.comes_to(id, "succeeded").await?;
    check::settled(&stack, &Expected { committed: vec![event, id], ..Expected::default() }).await
}

#[tokio::test]
async fn programs_that_meet_such_a_pooler_while_they_run_say_so_and_go_on_when_it_is_gone()
-> anyhow::Result<()> {
    let plan = Stack::builder().behind_proxy().worker(SCRIPTED);
    let plan = plan.env(SCRIPTED, POLLING[0].0, POLLING[0].1).env(RELAY, POLLING[1].0, POLLING[1].1);
    let mut stack = plan.start().await?;
    let direct = stack.server().port();
    stack.proxy()?.lead_to(Pooler::start(direct, false)?.port());
    let organization = Uuid::now_v7();
    let event = stack.emit("ThingOrdered", organization, "a", json!({"key": "a", "order": {}})).await?;
    let id = stack.enqueue("effect.keyed", organization, "b", json!({})).await?;
    for program in [RELAY, SCRIPTED] {
        eventually("the remedy in the log", async || Ok(stack.member(program)?.log()?.contains(REMEDY)))
            .await?;
        let address = stack.member(program)?.address()?;
        eventually("readiness to end", async || {
            Ok(http::call(address, "GET", "/readyz", &Value::Null)?.0 == 503)
        })
        .await?;
        ensure!(stack.member(program)?.process()?.exited()?.is_none(), "{program} has ended");
    }
    stack.proxy()?.lead_to(direct);
    stack.comes_to(id, "succeeded").await?;
    check::settled(&stack, &Expected { committed: vec![event, id], ..Expected::default() }).await
}

#[tokio::test]
async fn through_a_pooler_that_keeps_statements_polling_programs_do_everything_once() -> anyhow::Result<()> {
    const WORKERS: [&str; 4] = ["first", "second", "third", "fourth"];
    const EACH: usize = 500;
    let mut plan = Stack::builder().behind_proxy().relay_later("polling");
    plan = plan.env("polling", POLLING[1].0, POLLING[1].1);
    for worker in WORKERS {
        plan = plan.later(worker, SCRIPTED).env(worker, POLLING[0].0, POLLING[0].1);
    }
    let mut stack = plan.start().await?;
    stack.member(RELAY)?.kill9()?;
    let pooler = Pooler::start(stack.server().port(), true)?;
    stack.proxy()?.lead_to(pooler.port());
    stack.member("polling")?.start()?;
    for worker in WORKERS {
        stack.member(worker)?.start()?;
    }
    let organization = Uuid::now_v7();
    let mut committed = Vec::new();
    for n in 0..EACH {
        let (key, aggregate) = (format!("e{n}"), n.to_string());
        committed.push(
            stack.emit("ThingOrdered", organization, &aggregate, json!({"key": key, "order": {}})).await?,
        );
        committed.push(stack.enqueue("effect.bare", organization, &format!("o{n}"), json!({})).await?);
    }
    let done = "select count(*) from backline.operation_history where outcome = 'succeeded'";
    eventually("every operation to succeed", async || {
        Ok(usize::try_from(stack.count(done).await?)? == 2 * EACH)
    })
    .await?;
    check::settled(&stack, &Expected { committed, ..Expected::default() }).await?;
    ensure!(stack.effects().calls().len() == 2 * EACH, "somebody claimed what another had");
    let doctor = backline(&stack.proxied_url()?, &[], &["doctor"])?;
    ensure!(doctor.code == Some(0) && doctor.seen().contains("warn  sessions"), "{doctor:?}");
    ensure!(doctor.seen().contains(REMEDY), "what does not poll cannot start here: {doctor:?}");
    Ok(())
}
