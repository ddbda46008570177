//! What each check starts, and the script that judges it.

use super::namespace::Namespace;
use super::stack::{Stack, listening, program};
use super::tally::{Stop, Tally};
use super::tools::Tools;
use crate::step;
use backline_dev_cluster::paths;
use backline_dev_cluster::process::Launch;

type Check = fn(&Tools, &mut Tally) -> Result<(), Stop>;

/// Every check, in the order of running.
pub(crate) const ALL: &[(&str, Check)] = &[
    ("pubsub-client", pubsub_client),
    ("stripe-sdk", stripe_sdk),
    ("stripe-replay", stripe_replay),
    ("stripe-bodies", stripe_bodies),
    ("twilio-wire", twilio_wire),
    ("provider-faults", provider_faults),
    ("broker-faults", broker_faults),
];

fn pubsub_client(tools: &Tools, tally: &mut Tally) -> Result<(), Stop> {
    let mut script = tools.script("pubsub_client.py")?;
    let emulator = program(tools, "pubsub-client", "backline-pubsub-emulator")?;
    // Google's floor is ten seconds; expiry is the same a tenth as long.
    let emulator = emulator.arg("--port").arg("0").arg("--min-ack-deadline").arg("1");
    let (_emulator, at) = listening(&emulator)?;
    Ok(tally.script(script.arg(at.to_string()), &tools.log("pubsub-client.log"))?)
}

fn stripe_sdk(tools: &Tools, tally: &mut Tally) -> Result<(), Stop> {
    let mut script = tools.script("stripe_sdk.py")?;
    let sandbox = program(tools, "stripe-sdk", "backline-sandbox")?;
    let (_sandbox, at) =
        listening(&sandbox.arg("--search-lag").arg("0ms").arg("--settle-after").arg("100ms"))?;
    Ok(tally.script(script.arg(format!("http://{at}")), &tools.log("stripe-sdk.log"))?)
}

/// The mock listens on all addresses and cannot be told otherwise, so both run where there is only a loopback device.
fn stripe_replay(tools: &Tools, tally: &mut Tally) -> Result<(), Stop> {
    let namespace = Namespace::new()?;
    let (node, entry) = tools.mock()?;
    let script = tools.script("stripe_replay.py")?;
    let (ip, enter) = namespace.enter();
    let inside = |log: &str| {
        let log = tools.log(&format!("stripe-replay.{log}.log"));
        let _ = std::fs::remove_file(&log);
        enter.iter().fold(Launch::new(ip, log), |launch, word| launch.arg(word))
    };
    let mock = inside("mock").arg(node).arg(entry).env("PORT", "8000").start()?;
    let sandbox =
        inside("sandbox").arg(paths::binary("backline-sandbox")?).arg("--listen").arg("127.0.0.1:8001");
    let sandbox = listening(&sandbox)?;
    let mut judge = namespace.command([]);
    judge.arg(script.get_program()).args(script.get_args());
    judge.args(["http://127.0.0.1:8000", "http://127.0.0.1:8001"]);
    judge.envs(script.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let judged = tally.script(&mut judge, &tools.log("stripe-replay.log"));
    // Before the namespace goes.
    drop((mock, sandbox));
    Ok(judged?)
}

fn stripe_bodies(tools: &Tools, tally: &mut Tally) -> Result<(), Stop> {
    let openapi = tools.openapi()?;
    let mut stack = Stack::start("stripe-bodies", tools)?;
    let record = tools.log("stripe-bodies.ndjson");
    let proxy = stack.server("recording_proxy.py")?.arg(stack.sandbox.to_string()).arg(&record);
    let proxy = stack.proxy(&proxy)?;
    stack.relay(stack.emulator)?;
    stack.worker(stack.emulator, proxy)?;
    let mut script = stack.script("stripe_bodies.py")?;
    Ok(tally.script(script.arg(openapi).arg(record), &tools.log("stripe-bodies.log"))?)
}

/// The worker's calls are written down, judged by Prism, and written down again by who has to answer them: what Prism
/// refuses is in the first record and not in the second. Prism judges the answers as well.
fn twilio_wire(tools: &Tools, tally: &mut Tally) -> Result<(), Stop> {
    let (node, prism) = tools.prism()?;
    let whole = tools.twilio_openapi()?;
    let mut stack = Stack::start("twilio-wire", tools)?;
    let closed = tools.log("twilio-wire.description.json");
    step::run("description", tools.script("twilio_description.py")?.arg(whole).arg(&closed))?;
    let (before, behind) = (tools.log("twilio-wire.before.ndjson"), tools.log("twilio-wire.behind.ndjson"));
    let proxy = stack.server("recording_proxy.py")?.arg(stack.sandbox.to_string()).arg(&behind);
    let upstream = stack.proxy(&proxy)?;
    let judge = stack.prism(&node, &prism, &closed, upstream)?;
    let proxy = stack.server("recording_proxy.py")?.arg(judge.to_string()).arg(&before);
    let proxy = stack.proxy(&proxy)?;
    stack.twilio(proxy)?;
    let mut script = stack.script("twilio_wire.py")?;
    script.arg(closed).arg(before).arg(behind).arg(format!("http://{judge}"));
    script.arg(paths::workspace()?.join("examples/conversations/sql"));
    Ok(tally.script(&mut script, &tools.log("twilio-wire.log"))?)
}

fn provider_faults(tools: &Tools, tally: &mut Tally) -> Result<(), Stop> {
    let mut stack = Stack::start("provider-faults", tools)?;
    let (proxy, audit) = stack.microburst("http", stack.sandbox, "provider_faults.yml")?;
    stack.relay(stack.emulator)?;
    stack.worker(stack.emulator, proxy)?;
    let mut script = stack.script("provider_faults.py")?;
    Ok(tally.script(script.arg(format!("http://{audit}")), &tools.log("provider-faults.log"))?)
}

/// The fault proxy speaks HTTP/2 alone, and Google's client administers over HTTP/1.1 on the same address: a splitter
/// sends each where it belongs.
fn broker_faults(tools: &Tools, tally: &mut Tally) -> Result<(), Stop> {
    let mut stack = Stack::start("broker-faults", tools)?;
    let (proxy, audit) = stack.microburst("grpc", stack.emulator, "broker_faults.yml")?;
    let splitter = stack.server("splitter.py")?.arg(proxy.to_string()).arg(stack.emulator.to_string());
    let splitter = stack.proxy(&splitter)?;
    stack.relay(splitter)?;
    stack.worker(splitter, stack.sandbox)?;
    let mut script = stack.script("broker_faults.py")?;
    Ok(tally.script(script.arg(format!("http://{audit}")), &tools.log("broker-faults.log"))?)
}
